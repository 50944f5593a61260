"""DATA_QUALITY: checks of a table in a database of the project."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.quality.params import DataQualityParams


class DataQuality(ChildType[DataQualityParams]):
    """Judges the rows of a table, in a process of the attempt's own. It changes nothing."""

    Params = DataQualityParams
    work = "shoal.worker.types.quality.run:run"
    settles = True
