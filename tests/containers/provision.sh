#!/bin/sh
# Install what the tests of CONTAINER tasks need from Debian: both engines, and a static busybox that
# they make their image of. Quiet when nothing is missing. Nothing of it is started here.
set -eu

missing=
command -v podman >/dev/null 2>&1 || missing="$missing podman"
command -v dockerd >/dev/null 2>&1 || missing="$missing docker.io"
command -v runc >/dev/null 2>&1 || missing="$missing runc"
test -x /bin/busybox || missing="$missing busybox-static"
if [ -z "$missing" ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "The tests of CONTAINER tasks run as root and need podman, dockerd, runc and a static busybox." >&2
    echo "Install as root, on Debian: apt-get install --no-install-recommends $missing" >&2
    exit 1
fi
apt-get update -q
# shellcheck disable=SC2086 # several packages
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
