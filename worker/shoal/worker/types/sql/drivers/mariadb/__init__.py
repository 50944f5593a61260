"""MariaDB and MySQL, by PyMySQL.

``session`` runs statements and streams what they return, ``connecting`` opens connections and says
why one does not open, ``tags`` keeps two attempts of a task from being there at once, ``errors``
says what an error means. Start reading in ``session``.
"""

from shoal.worker.types.sql.drivers.mariadb.session import connect, settle

__all__ = ["connect", "settle"]
