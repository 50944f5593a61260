"""What a program of the task is given that runs in another place than on this worker."""

import os
from typing import Any

from shoal.worker.processes.variables import parameter_variables
from shoal.worker.types.child.work import Work

_OF_THIS_MACHINE = frozenset({"SHOAL_OUTPUT", "SHOAL_PARAMETERS"})  # files


def variables(work: Work[Any]) -> dict[str, str]:
    """Return the variables that a SHELL task gets, but for files of this machine and secrets.

    A value of a parameter may hold a secret.
    """
    here = os.environ
    own = {
        name: value
        for name, value in here.items()
        if name.startswith("SHOAL_") and not name.startswith("SHOAL_SECRET_")
    }
    # A name that would steer programs is in no environment.
    given = {
        name: value
        for name, value in parameter_variables(work.parameters).items()
        if here.get(name) == value
    }
    return {name: value for name, value in {**own, **given}.items() if name not in _OF_THIS_MACHINE}
