"""The jobs of alert servers, each run by one of them at a time.

``event_reader`` makes alerts of events, ``reminders`` repeats and escalates open alerts, and
``sender`` delivers one share of the messages. ``catalog`` has the definitions of all projects.

How an event becomes a message:

1. A change and its event are one transaction, so no event is lost.
2. ``event_reader`` stores alerts, messages and its new position in one transaction. A unique key
   of event, project and rule keeps a second reader from storing an alert twice.
3. ``sender`` stores a message as SENDING before it leaves, and the result afterwards.

- **A server dies after 2**: its successor continues behind the stored position.
- **A server dies within 3**: its successor sends the message again. A receiver gets a message at
  least once, and twice only around a death.
- **A server is late**: each transaction checks the epoch of the job first, and is refused
  (``JobTaken``) if a later one is stored.
- **An item cannot be processed**: it is quarantined in the transaction that moves past it.
"""
