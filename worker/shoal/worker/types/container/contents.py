"""What a container finds inside: variables, and files below ``/shoal``.

Variables are shown to all users who may ask the engine, so they hold no secret. Files lie in the
attempt's own folder, which is closed to others and goes with the attempt; inside they can be read
by whatever user the image has.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.core.definition.resources import RESOURCES
from shoal.worker.processes.work_files import write_new
from shoal.worker.types.child.remote_environment import variables
from shoal.worker.types.child.work import Work
from shoal.worker.types.container.kind import INSIDE, ContainerParams

PARAMETERS = "parameters.json"
_SECRETS = "secrets"
_LEAST_SECRET = 4  # characters, as everywhere


def environment(work: Work[ContainerParams], output: str) -> dict[str, str]:
    """Return the variables of a container whose outputs are in the file ``output``.

    A parameter whose value holds a secret is in the file of parameters alone; the log says so.
    """
    secrets = [text for text in _secret_texts(work) if len(text) >= _LEAST_SECRET]
    given = variables(work)
    open_ones = {
        name: value for name, value in given.items() if not any(one in value for one in secrets)
    }
    if hidden := sorted(name for name in given.keys() - open_ones.keys() if name[:6] != "SHOAL_"):
        names = ", ".join(hidden)
        work.log(f"shoal: no variable, as secrets are in it, but in $SHOAL_PARAMETERS: {names}")
    return {
        **open_ones,
        **work.params.environment,
        "SHOAL_OUTPUT": output,
        "SHOAL_PARAMETERS": f"{INSIDE}/{PARAMETERS}",
    }


def _secret_texts(work: Work[ContainerParams]) -> Iterator[str]:
    yield from work.secrets.values()
    yield from work.params.secrets.values()


def files(work: Work[ContainerParams]) -> dict[str, str]:
    """Return the texts of the files below ``/shoal`` by their paths there."""
    parameters = json.dumps(dict(work.parameters), ensure_ascii=False)
    secrets = {f"{_SECRETS}/{name}": text for name, text in work.params.secrets.items()}
    return {PARAMETERS: parameters, **secrets}


@dataclass(frozen=True)
class Binds:
    """Folders and files of the worker, by where the container sees them."""

    read_only: Mapping[str, Path]
    writable: Mapping[str, Path]


def laid_out(work: Work[ContainerParams]) -> Binds:
    """Make the files of a container in the attempt's folder. Blocks. Raises OSError."""
    folder, output = work.folder / "shoal", Path(os.environ["SHOAL_OUTPUT"])
    # Two of them are places for what is mounted over them: nothing can be made there then.
    for made in (folder, folder / _SECRETS, folder / RESOURCES):
        made.mkdir()
        made.chmod(0o755)
    (folder / "output").touch()
    for path, text in files(work).items():
        write_new(folder / path, text.encode(), 0o444)
        (folder / path).chmod(0o444)  # whatever the worker's umask is
    output.touch()
    output.chmod(0o666)
    read_only = {INSIDE: folder}
    if (resources := work.folder / RESOURCES).is_dir():
        _open_for_reading(resources)
        read_only[f"{INSIDE}/{RESOURCES}"] = resources
    return Binds(read_only, {f"{INSIDE}/output": output})


def _open_for_reading(folder: Path) -> None:
    """Let all users read the attempt's copies: the folder around them is closed."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755)
