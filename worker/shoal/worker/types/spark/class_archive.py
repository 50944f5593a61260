"""The archive of classes with which Java starts a Spark driver in half to two thirds of the time.

A worker makes one for its Java and its Spark, in the background, when something could have used
it. Java judges by itself whether an archive fits, and starts without it otherwise.
"""

import hashlib
import os
import shutil
from pathlib import Path

#: The setting by which task types know the folder of the archives; see TaskContext.
SETTING = "spark_classes"
#: Of an archive that a task has missed.
WANTED = ".wanted"
_CDS, _AOT = ".jsa", ".aot"
# A line about an archive that does not fit would be in each log.
_QUIET = {_CDS: ("-Xlog:cds=off", "-Xlog:cds+dynamic=off"), _AOT: ("-Xlog:aot=off",)}
_USE = {_CDS: "-XX:SharedArchiveFile=", _AOT: "-XX:AOTCache="}
_MAKE = {_CDS: "-XX:ArchiveClassesAtExit=", _AOT: "-XX:AOTCacheOutput="}
_FIRST_AOT = 25  # of Java: the first that makes such a cache in one run


def use_options(root: str, home: Path, folder: Path) -> list[str]:
    """Return the options with which Java, in the current folder ``folder``, uses an archive.

    ``root`` is the folder of the archives, empty: there are to be none; ``home`` is Spark's.
    Without an archive there are no options, and a worker is asked for one. Blocks. Raises OSError.
    """
    if not root:
        return []
    key = _key(home)
    for suffix, option in _USE.items():
        archive = Path(root, key + suffix)
        if archive.exists():
            # Spark's script cuts its options at blanks, which the folder may have in its name.
            link = folder / f"classes{suffix}"
            link.symlink_to(archive)
            return [option + link.name, *_QUIET[suffix]]
    Path(root, key + WANTED).touch()
    return []


def archive_name(key: str, java_version: int) -> str:
    """Return how the archive for ``key`` is called that a Java of this version makes."""
    return key + (_AOT if java_version >= _FIRST_AOT else _CDS)


def make_options(archive: str) -> list[str]:
    """Return the options with which Java makes, at its end, an archive of the classes it used."""
    suffix = Path(archive).suffix
    return [_MAKE[suffix] + archive, *_QUIET[suffix]]


def _key(home: Path) -> str:
    """Return what tells a Java and a Spark from others."""
    java = os.environ.get("JAVA_HOME")
    executable = Path(java, "bin", "java") if java else Path(shutil.which("java") or "java")
    files = [executable.resolve(), *sorted((home / "jars").glob("*.jar"))]
    told = hashlib.sha256()
    for file in files:
        status = file.stat()
        told.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return told.hexdigest()[:32]
