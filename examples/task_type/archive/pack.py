"""What an attempt does, in a process of its own."""

import os
import tarfile
from pathlib import Path

from archive.kind import ArchiveParams
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work


def pack(work: Work[ArchiveParams]) -> None:
    """Pack the folder. Raises WorkFailed, Cancelled."""
    folder, target = Path(work.params.folder), Path(work.params.file)
    if not folder.is_dir():
        # The same another time, so no retry follows.
        raise WorkFailed(f"there is no folder {folder} on this worker", permanent=True)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    # A name that no other attempt has. The whole archive appears at once, or not at all.
    new = target.with_name(f".{target.name}.{work.tag}-{work.attempt}")
    try:
        with tarfile.open(new, "w:gz", compresslevel=work.params.level) as archive:
            for done, path in enumerate(files):
                work.require_wanted()  # a kill, or the timeout: ends here
                work.progress(done, len(files), "files", path.name)  # `shoal watch` shows a bar
                archive.add(path, arcname=path.relative_to(folder))
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    work.log(f"packed {len(files)} files of {folder} into {target}")
    work.output(file=str(target), files=len(files), bytes=os.path.getsize(target))
