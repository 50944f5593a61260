"""Users who can sign in: their first password is changed already."""

import httpx

PASSWORD = "swim-together-2026"


def add_reader(http: httpx.Client, name: str, project: str = "default") -> str:
    """Make a user who may read a project and nothing else. Returns the password."""
    password = add_user(http, name)
    answer = http.put(f"/projects/{project}/members/user/{name}", json={"role": "reader"})
    assert answer.status_code == 201, answer.text
    return password


def add_user(http: httpx.Client, name: str, full_name: str = "", *, is_admin: bool = False) -> str:
    """Make a user by a client of ``/api/v1`` that may. Returns the password."""
    body = {"name": name, "full_name": full_name, "is_admin": is_admin, "password": PASSWORD}
    answer = http.post("/users", json=body)
    assert answer.status_code == 201, answer.text
    address = str(http.base_url)
    headers = {"origin": address.removesuffix("/api/v1/")}
    with httpx.Client(base_url=address, headers=headers, trust_env=False) as browser:
        answer = browser.post("/login", json={"name": name, "password": PASSWORD})
        assert answer.status_code == 204, answer.text
        # Browsers take http to loopback for secure; this client does not, and keeps no cookie.
        cookie = answer.headers["set-cookie"].partition(";")[0]
        body = {"current": PASSWORD, "new": f"{PASSWORD}!", "keep_tokens": False}
        answer = browser.put("/me/password", json=body, headers={"cookie": cookie})
        assert answer.status_code == 204, answer.text
    return f"{PASSWORD}!"
