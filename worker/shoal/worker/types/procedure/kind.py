"""PROCEDURE: a routine of a database of the project."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.procedure.params import ProcedureParams


class Procedure(ChildType[ProcedureParams]):
    """Calls a procedure or function of a data source, in a process of the attempt's own."""

    Params = ProcedureParams
    work = "shoal.worker.types.procedure.run:run"
    settles = True
