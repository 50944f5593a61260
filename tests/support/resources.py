"""Files in the storage of resources, put there without an API."""

import hashlib

from shoal.proto import shoal_pb2 as pb
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Storage


def put(cluster: ClusterSettings, path: str, content: bytes, version: int = 1) -> pb.Resource:
    """Store a file as the API does; return what a payload says of it."""
    name = Storage.new_name("tests", "uid")
    with Storage.of(cluster).writing(name) as file:
        file.write(content)
    digest = hashlib.sha256(content).hexdigest()
    return pb.Resource(path=path, version=version, sha256=digest, size=len(content), object=name)
