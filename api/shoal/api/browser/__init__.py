"""What browsers get besides REST: the pages of the UI, and a sign-in without a password.

``pages`` serves what ``make ui`` has built, ``policy`` says what those pages may do in a browser,
``one_time`` lets who can read the data folder sign in with a link.
"""
