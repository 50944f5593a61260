"""A real OpenLDAP server on the loopback, with TLS and some people (``tests/provision.sh``)."""

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shoal.api.federation.directory import VerifiedTls, ldap3
from shoal.client.local.zookeeper import free_port
from shoal.proto.tls import TlsFiles, create_identity
from tests.support.servers.listening import wait_until_listening

SLAPD, SLAPADD = Path("/usr/sbin/slapd"), Path("/usr/sbin/slapadd")
BASE = "dc=example,dc=org"
PEOPLE, GROUPS = f"ou=people,{BASE}", f"ou=groups,{BASE}"
READER, READER_PASSWORD = f"cn=reader,{BASE}", "the reader's own password"
PASSWORD = "seven wild geese fly"

# It lets in who gives no password, as servers may: so it shows whether we ask for that.
_CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/pid
allow bind_anon_cred
TLSCertificateFile {tls.cert}
TLSCertificateKeyFile {tls.key}
database mdb
maxsize 10485760
suffix "{base}"
rootdn "cn=root,{base}"
rootpw "{password}"
directory {folder}/data
dbnosync
overlay memberof
"""


@dataclass(frozen=True)
class Slapd:
    """A running server. ``tls``: its files, with the authority."""

    ldaps: str
    ldap: str
    tls: TlsFiles

    def put_into_group(self, user: str, group: str) -> None:
        """Make somebody a member."""
        self._modify(user, group, ldap3.MODIFY_ADD)

    def take_out_of_group(self, user: str, group: str) -> None:
        """Make somebody no member any more."""
        self._modify(user, group, ldap3.MODIFY_DELETE)

    def rename(self, user: str, to: str) -> None:
        """Give somebody another name, and so another DN."""
        with self._root() as root:
            assert root.modify_dn(f"uid={user},{PEOPLE}", f"uid={to}"), root.result

    def _modify(self, user: str, group: str, how: str) -> None:
        change = {"member": [(how, [f"uid={user},{PEOPLE}"])]}
        with self._root() as root:
            assert root.modify(f"cn={group},{GROUPS}", change), root.result

    @contextmanager
    def _root(self) -> Iterator[ldap3.Connection]:
        context = ssl.create_default_context(cafile=str(self.tls.ca))
        port = int(self.ldaps.rpartition(":")[2])
        server = ldap3.Server(
            "127.0.0.1", port, use_ssl=True, tls=VerifiedTls(context), get_info="NO_INFO"
        )
        connection = ldap3.Connection(server, f"cn=root,{BASE}", PASSWORD)
        assert connection.bind(), connection.result
        try:
            yield connection
        finally:
            connection.unbind()


@contextmanager
def slapd(folder: Path, referral: str) -> Iterator[Slapd]:
    """Run a server whose files are in ``folder``; a part of its tree is elsewhere: ``referral``."""
    tls = create_identity(folder / "tls")
    (folder / "data").mkdir()
    config, ldif = folder / "slapd.conf", folder / "people.ldif"
    config.write_text(_CONFIG.format(folder=folder, tls=tls, base=BASE, password=PASSWORD))
    ldif.write_text(_people(referral))
    files = [str(SLAPADD), "-q", "-f", str(config), "-l", str(ldif)]
    subprocess.run(files, check=True, capture_output=True)
    ports = free_port(), free_port()
    urls = f"ldaps://127.0.0.1:{ports[0]}", f"ldap://127.0.0.1:{ports[1]}"
    command = [str(SLAPD), "-d", "0", "-f", str(config), "-h", " ".join(urls)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_until_listening(ports[0], process)
        wait_until_listening(ports[1], process)
        server = Slapd(urls[0], urls[1], tls)
        server.put_into_group("ada", "analysts")
        yield server
    finally:
        process.terminate()
        process.wait()


def _people(referral: str) -> str:
    entries = [
        f"dn: {BASE}\nobjectClass: domain\ndc: example",
        f"dn: {PEOPLE}\nobjectClass: organizationalUnit\nou: people",
        f"dn: {GROUPS}\nobjectClass: organizationalUnit\nou: groups",
        f"dn: ou=twins,{PEOPLE}\nobjectClass: organizationalUnit\nou: twins",
        f"dn: {READER}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\n"
        f"cn: reader\nuserPassword: {READER_PASSWORD}",
        f"dn: ou=elsewhere,{PEOPLE}\nobjectClass: referral\nobjectClass: extensibleObject\n"
        f"ou: elsewhere\nref: {referral}",
    ]
    names = ("ada", "bob", "boss", "cleo", "dora", "finn", "gwen", "twin")
    entries += [_person(f"uid={uid},{PEOPLE}", uid) for uid in names]
    entries.append(_person(f"uid=twin,ou=twins,{PEOPLE}", "twin"))
    # A group has a member at least.
    entries += [
        f"dn: cn={name},{GROUPS}\nobjectClass: groupOfNames\ncn: {name}\nmember: {READER}"
        for name in ("analysts", "operators")
    ]
    return "\n\n".join(entries) + "\n"


def _person(dn: str, uid: str) -> str:
    return (
        f"dn: {dn}\nobjectClass: inetOrgPerson\nuid: {uid}\nsn: {uid}\ncn: {uid.title()} Doe\n"
        f"userPassword: {PASSWORD}"
    )
