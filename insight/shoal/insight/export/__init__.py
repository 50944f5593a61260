"""The export: ended rows leave the database for Parquet files, and each counts exactly once.

``exporter`` makes one export after the other. ``extraction`` reads the database, ``columns`` turns
rows into Arrow tables, ``damage`` finds files that are damaged or missing and exports their rows
again, ``compaction`` joins small files, ``program`` is the process that a master starts.

One row of the database, ``history_export``, holds the position of the history, and decides. An
export goes through four steps:

1. *Read*: rows that events report as ended since the position. Only ids below which every
   transaction has ended are read, so a transaction that commits late is not missed.
2. *Write*: the files, under names that no other exporter uses.
3. *Commit*: one transaction replaces the position and stores the manifest in the database, if the
   position is still the one that the export started from. From then on the export counts.
4. *Publish*: the manifest is stored beside the files. The next exporter stores it again before it
   does anything else.

What may fail, and what happens then:

========================================  ========================================================
killed before the commit                  the files are in no manifest; they are removed a day
                                          later, and the next export writes the same rows
killed after the commit                   the next exporter publishes the manifest
two exporters at once                     one commit fails (ExportTaken)
events purged that were not exported      all instances are exported again by their ids; rows that
                                          are in two files count once for readers
history ahead of the database, as after   the export fails; ``history_url`` has to name an empty
the restore of an older database          folder
a row that cannot be read                 it is left out; the manifest counts it, the master warns
storage without manifests, although the   the export fails: the storage may not be mounted
database knows of exports
========================================  ========================================================

After each export the files are read back. If size and SHA-256 are those of the manifest, the row
``history_verified`` says up to which ids the history is complete, and the purge deletes only rows
below these. A file that is damaged later leaves the manifest; the same transaction sets
``history_verified`` back, so that its rows are exported again while the database still has them.
"""
