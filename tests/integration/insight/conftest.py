"""Java for Spark, as ``shoal up`` gives it to its tasks."""

from collections.abc import Iterator

import pytest

from shoal.client.local.java import find_java, spark_java_home


@pytest.fixture(scope="session", autouse=True)
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        home = spark_java_home(find_java(), tmp_path_factory.mktemp("java"))
        patch.setenv("JAVA_HOME", str(home))
        yield
