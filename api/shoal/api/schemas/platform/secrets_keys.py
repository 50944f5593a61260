"""Keys that encrypt secrets, by their ids."""

from enum import StrEnum

from pydantic import Field, StrictBool

from shoal.api.schemas.common import Answer, RequestBody


class Phase(StrEnum):
    """How far a rotation is."""

    WAITING = "waiting"  # masters do not have the new key yet
    WORKING = "working"  # ask for the next step
    STUCK = "stuck"  # some values cannot be decrypted, so their key is not retired
    DONE = "done"


class KeysOut(Answer):
    """Which keys there are, and where. No key is ever shown."""

    primary: str = Field(description="It encrypts.")
    next: str | None = Field(description="It will, when every live master has it.")
    old: list[str] = Field(description="They did, and may still be in use.")
    retired: list[str] = Field(description="Keys that are no longer used.")
    here: list[str] = Field(description="In the file of the API that answers.")
    masters: dict[str, list[str]] = Field(description="In the files of the live masters.")
    used: dict[str, int] = Field(description="How many values; empty: from before keys had ids.")


class RotationIn(RequestBody):
    """Whether a rotation may begin."""

    begin: StrictBool = Field(description="false: only go on with one that has begun.")


class RotationOut(Answer):
    """What a step has done."""

    phase: Phase
    key: str = Field(description="The new key.")
    did: str
    encrypted: int
    without_key: list[str] = Field(description="Live masters that do not have the new key.")
    unreadable: list[str] = Field(description="What no key that is here decrypts: PROJECT/NAME.")
    retired: list[str] = Field(description="Keys that were moved out of the file here.")
