#!/bin/sh
# Install what the tests need from Debian: PostgreSQL, MariaDB, OpenSSH and OpenLDAP servers, a
# receiver of SNMP traps with its tools, compilers of C and Java, a browser, shells, and what the
# fault suite makes its hosts of. Quiet when nothing is missing. The tests start servers of their own
# from these programs, in temporary folders, and compile a library that shifts the clocks of processes. Without
# the tools for networks the suite only leaves out the faults that need them, and without the shells
# the hosts of SSH tasks that have them.
set -eu

missing=postgresql
for program in /usr/lib/postgresql/*/bin/postgres; do
    if [ -x "$program" ]; then
        missing=
    fi
done
test -x /usr/sbin/mariadbd || missing="$missing mariadb-server-core"
test -x /usr/sbin/sshd || missing="$missing openssh-server"
# The pages are looked at in a real browser, which has to have letters for both languages.
command -v chromium >/dev/null 2>&1 || missing="$missing chromium fonts-noto-cjk"
test -x /usr/sbin/slapd || missing="$missing slapd"
test -x /usr/sbin/snmptrapd || missing="$missing snmptrapd"
command -v snmptranslate >/dev/null 2>&1 || missing="$missing snmp"
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v javac >/dev/null 2>&1 || missing="$missing default-jdk-headless"
wanted=
command -v ip >/dev/null 2>&1 || wanted="$wanted iproute2"
command -v nft >/dev/null 2>&1 || wanted="$wanted nftables"
command -v busybox >/dev/null 2>&1 || wanted="$wanted busybox"
command -v tcsh >/dev/null 2>&1 || wanted="$wanted tcsh"
if [ -z "$missing$wanted" ]; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    as_root=unavailable
fi

if [ "$as_root" = unavailable ] || ! command -v apt-get >/dev/null 2>&1; then
    if [ -z "$missing" ]; then
        exit 0
    fi
    echo "The tests need PostgreSQL's server programs in /usr/lib/postgresql/<version>/bin, MariaDB's" >&2
    echo "/usr/sbin/mariadbd, OpenSSH's /usr/sbin/sshd, OpenLDAP's /usr/sbin/slapd, snmptrapd, snmptranslate, cc and javac." >&2
    echo "Install as root, on Debian: apt-get install --no-install-recommends $missing" >&2
    echo "Or name a running server in SHOAL_TEST_POSTGRESQL_URL." >&2
    exit 1
fi

$as_root apt-get update -q
# Its package would set up and start a directory of this machine otherwise.
echo "slapd slapd/no_configuration boolean true" | $as_root debconf-set-selections
# shellcheck disable=SC2086 # several packages
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing $wanted
