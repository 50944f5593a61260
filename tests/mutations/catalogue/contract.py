"""No edit is lost, and nothing is made on the way to something else: each check by itself."""

from tests.mutations.mutation import Mutation, Promise, mutation

_CONDITIONS = "api/shoal/api/web/preconditions.py"
_TESTS = "tests/integration/api/test_preconditions.py::"
_EDITORS = (_TESTS + "test_second_of_two_editors_is_told_what_the_first_has_done",)
_NEW = (_TESTS + "test_what_is_to_be_new_replaces_nothing",)
_BROWSER = (_TESTS + "test_browser_has_to_say_what_it_has_seen",)
_PROJECTS = (
    _TESTS + "test_nothing_but_a_project_itself_makes_a_project",
    _TESTS + "test_neither_a_definition_nor_a_file_makes_a_project",
)


def _lost(name: str, file: str, change: tuple[str, str], killers: tuple[str, ...]) -> Mutation:
    return mutation(name, Promise.NOTHING_LOST, file, change, killers)


MUTATIONS: tuple[Mutation, ...] = (
    _lost(
        "If-Match is ignored",
        _CONDITIONS,
        ("        if not self._match & {ANY, tag}:", "        if False:"),
        _EDITORS,
    ),
    _lost(
        "If-Match of what is gone is ignored",
        _CONDITIONS,
        (
            "            if self._match is not None:\n                raise PreconditionFailed",
            "            if False:\n                raise PreconditionFailed",
        ),
        _EDITORS,
    ),
    _lost(
        "If-None-Match is ignored",
        _CONDITIONS,
        (
            "        if self._must_be_new:\n            raise",
            "        if False:\n            raise",
        ),
        _NEW,
    ),
    _lost(
        "browsers overwrite blindly",
        _CONDITIONS,
        ("needs_match=caller.credential.is_session,", "needs_match=False,"),
        _BROWSER,
    ),
    _lost(
        "ETag does not change with the state",
        _CONDITIONS,
        ("hashlib.sha256(content.encode())", "hashlib.sha256()"),
        _EDITORS,
    ),
    _lost(
        "projects are made on the way to what they have",
        "api/shoal/api/access/guard.py",
        ('if "project" in in_path and not project_may_be_missing:', "if False:"),
        _PROJECTS,
    ),
    _lost(
        "definitions make projects",
        "api/shoal/api/routes/workflows/published.py",
        ("            await uow.projects.require(project)\n", "            pass\n"),
        (
            "tests/integration/api/test_workflows.py::"
            "test_a_dry_run_says_what_would_happen_and_stores_nothing",
        ),
    ),
    _lost(
        "a client is not told that history is gone",
        "api/shoal/api/routes/events.py",
        ("return kept_behind if 0 < after < kept_behind else None", "return None"),
        (
            "tests/integration/api/test_events.py::"
            "test_client_is_told_that_what_it_has_missed_is_gone",
        ),
    ),
)
