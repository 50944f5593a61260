"""Users of the browser tests who may read."""

from collections.abc import Mapping

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest


def add_reader(cluster: LocalCluster, rest: Rest, reader: Mapping[str, str]) -> None:
    """Add a user who may read the project default, and who has chosen a password.

    ``reader``: name and password, of which the name is nobody else's on this cluster.
    """
    first = "to be changed at once"
    user = {"name": reader["name"], "password": first}
    assert rest.http.post("/users", json=user).status_code == 201
    member = f"/projects/default/members/user/{reader['name']}"
    role = rest.http.put(member, json={"role": "reader"})
    assert role.status_code in (200, 201), role.text
    own = Rest(cluster.url, "")
    try:
        del own.http.headers["Authorization"]
        signed = own.http.post("/login", json=user)
        assert signed.status_code == 204, signed.text
        change = {"current": first, "new": reader["password"]}
        # Browsers keep a secure cookie for the loopback; this client does not.
        session = {"Cookie": signed.headers["set-cookie"].partition(";")[0], "Origin": cluster.url}
        changed = own.http.put("/me/password", json=change, headers=session)
        assert changed.status_code in (200, 204), changed.text
    finally:
        own.close()
