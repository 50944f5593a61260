"""``python -m shoal.client.cli`` is ``shoal``."""

from shoal.client.cli import main

main()
