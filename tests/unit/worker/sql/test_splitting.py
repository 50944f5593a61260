"""A text of SQL is taken apart where its statements end, and every byte of it is kept."""

from itertools import chain, zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.worker.types.sql.statements.lexer import InvalidStatement
from shoal.worker.types.sql.statements.scripts import SqlScript, split
from tests.support.growth import keeps, shortest_s
from tests.unit.worker.sql.dialects import DIALECTS


def texts(kind: str, text: str, separator: str = "") -> list[str]:
    return [one.text for one in split(text, DIALECTS[kind], separator).statements]


def joined(script: SqlScript) -> str:
    pairs = zip_longest(script.separators, [one.text for one in script.statements], fillvalue="")
    return "".join(chain.from_iterable(pairs))


# -- nothing is lost -------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(
            "'",
            '"',
            "`",
            "[",
            "]",
            "$$",
            "$a$",
            "--",
            "#",
            "/*",
            "*/",
            "/*!50003",
            ";",
            "\n",
            " ",
            "(",
        ),
        *(
            ")",
            "\\",
            "''",
            "BEGIN",
            "END",
            "CASE",
            "CREATE PROCEDURE p()",
            "CREATE TRIGGER t",
            "IF",
        ),
        *(
            "DELIMITER //\n",
            "//",
            "\nGO\n",
            "\n/\n",
            "${a}",
            "r'",
            "E'",
            "q'[",
            "ATOMIC",
            "IS",
            "🐟",
        ),
    ]
)


@given(
    kind=st.sampled_from(list(DIALECTS)),
    text=st.one_of(st.lists(PIECES, max_size=25).map(" ".join), st.lists(PIECES).map("".join)),
    separator=st.sampled_from(["", "", ";;", "//", "\n"]),
)
@settings(max_examples=600, deadline=None)
def test_statements_and_separators_are_the_text(kind: str, text: str, separator: str) -> None:
    try:
        script = split(text, DIALECTS[kind], separator)
    except InvalidStatement:
        return
    assert joined(script) == text
    assert all(text[one.start :].startswith(one.text) for one in script.statements)
    assert all(one.text.lstrip() == one.text != "" for one in script.statements)


WHOLE = {
    "postgresql": [
        "select 'a;b''c;'",
        'select E\'a\\\';b\', "c;""d"',
        "do $$ begin perform 1; end; $$",
        "create function f() returns int language sql as $f$ select 1; $f$",
        "create function g() returns int begin atomic select 1; select case when a then 2 end; end",
        "select 1 /* a; /* b; */ c; */ + 2",
        "create rule r as on insert to t do also (insert into a values (1); delete from b)",
        "-- it's; a comment\nselect 2",
        "select a#>>'{x;y}', b #- '{a}', '1'::int",
        "select 1 as end",
        "begin",
        "commit",
    ],
    "mariadb": [
        "select 'a\\';b', \"c;\\\"d\", `e;f`",
        "select 1 # it's; a comment\n + 2",
        "select 3--1",
        "create or replace definer=root@localhost procedure p() begin if a then select 1; end if; "
        "l: loop leave l; end loop l; case x when 1 then select 1; else select 2; end case; end",
        "create trigger t before insert on a for each row begin set a= case when 1 then 2 end; end",
        "create event e on schedule every 1 day do update t set a = 1",
        "create procedure q() begin select case when 1 then 2 end for update; end",
        "/*!50003 create trigger t before insert on a for each row begin set @a=1; end */",
        "select t.end, @begin from t",
        "begin not atomic select 1; end",
        "start transaction",
    ],
    "sqlite": [
        "select [a;b], `c;d`, \"e;f\", 'x\\'",
        "create temp trigger t after insert on a begin insert into b values (case when 1 then 2 "
        "end); update c set d = 1; end",
        "select 1 /* ; /* ; */",
    ],
    "trino": [
        "create function f(x bigint) returns bigint begin if x > 1 then return 1; end if; end"
    ],
    "spark": ["select 'a\\';b', \"c;d\", `e;f`, r'raw;'"],
    "clickhouse": ["select 'a\\';b', `c\\`;d`, $x$;$x$"],
    "duckdb": ["select $$a;b$$, e'\\';'"],
}


@given(kind=st.sampled_from(list(WHOLE)), data=st.data())
@settings(max_examples=300, deadline=None)
def test_each_statement_of_a_script_is_found(kind: str, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.sampled_from(WHOLE[kind]), max_size=8))
    between = [
        data.draw(st.sampled_from([";\n", " ; ", ";\n-- x\n;\n", ";/* ; */;"])) for _ in wanted
    ]
    text = "".join(chain.from_iterable(zip(wanted, between, strict=True)))
    assert texts(kind, text) == wanted


# -- what others split wrongly ---------------------------------------------------------------------

PACKAGE = """create or replace package body p as
  n number;
  procedure a is x number; begin null; end a;
  function f return number is begin return case when 1 = 1 then 2 end; end;
begin
  null;
end p;"""
BLOCK = """BEGIN
  FOR record IN (SELECT ROWNUM n FROM (SELECT 1 a FROM dual GROUP BY CUBE(1,2,3)) WHERE ROWNUM <= 2)
  LOOP
    dbms_output.put_line(record.n);
  END LOOP;
  IF 1 = 1 THEN NULL; END IF;
END;"""


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("mysql", "insert into a values (1); insert into b values (2);", 2),
        ("hive", "select * from test1;\nselect * from test2;", 2),
        ("hive", "select concat('11', ';', '33');", 1),
        ("postgresql", 'select $j${"key": ["value; with semicolon"]}$j$::json', 1),
        ("postgresql", "prepare a as select $1||$2; prepare b as select $1||$3", 2),
        ("oracle", "select q'[it's; ok]', 'x\\' from dual; select 2 from dual", 2),
        ("oracle", BLOCK, 1),
        ("oracle", f"{BLOCK}\n/\n{PACKAGE}\n/\nselect 1 from dual\n/\n", 3),
        ("oracle", f"{PACKAGE}\n{BLOCK}\nselect 1 from dual;", 3),
        ("oracle", "<<l>> declare x number; begin null; end l; select 1 from dual", 2),
        ("oracle", "create package s as procedure p; end s; create type t as object (a int);", 2),
        ("oracle", "create function g return number as language java name 'x'; select 2 from d", 2),
        ("oracle", "create trigger t for insert on a compound trigger before statement is begin "
         "null; end before statement; end t;\n/\nselect 1 from dual", 2),
        ("oracle", "select 4\n / 2 from dual", 1),
        ("sqlserver", "create table [a;b] (x int); select 1\nGO\nselect '\nGO\n'\ngo -- done\n", 2),
        ("sqlserver", "select 1 go\n", 1),
    ],
)  # fmt: skip
def test_number_of_statements(kind: str, text: str, expected: int) -> None:
    assert len(texts(kind, text)) == expected


def test_unit_of_oracle_keeps_its_semicolon_and_a_statement_has_none() -> None:
    assert texts("oracle", f"{BLOCK}\n/\nselect 1 from dual;") == [BLOCK, "select 1 from dual"]


def test_delimiter_is_obeyed_and_not_sent() -> None:
    script = """select 1;
DELIMITER $$
CREATE PROCEDURE p() IF a THEN SELECT 'x$$;'; END IF$$
delimiter ;
SELECT 2
"""
    assert texts("mariadb", script) == [
        "select 1",
        "CREATE PROCEDURE p() IF a THEN SELECT 'x$$;'; END IF",
        "SELECT 2",
    ]


@pytest.mark.parametrize("text", ["", " \n", ";;\n;", "-- nothing\n", "/* nothing */;"])
def test_nothing_to_run(text: str) -> None:
    assert texts("sqlite", text) == []


def test_comments_belong_to_the_statement_behind_them() -> None:
    assert texts("sqlite", "-- a\nselect 1; -- b\nselect 2 -- c\n") == [
        "-- a\nselect 1",
        "-- b\nselect 2 -- c",
    ]


def test_separator_ends_a_statement_where_it_ends_a_line() -> None:
    text = "select ';; ' ;;  \n\nselect 2;\nselect 3\n;;\n"
    assert texts("sqlite", text, ";;") == ["select ';; '", "select 2;\nselect 3"]


# -- what is not sure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("mariadb", "create procedure p() if a then select 1; end if", "body without BEGIN"),
        ("mariadb", "create procedure p() begin select end from t; end", "keyword or a name"),
        ("mariadb", "create procedure p() begin select begin from t; end; select 1", "no END"),
        ("mariadb", "if a then select 1; end if", "outside of a procedure"),
        ("mariadb", "create package p as procedure a; end; select 1", "a package"),
        ("mariadb", "/*!50003 select 1", "never closed"),
        ("mariadb", "select 1\nDELIMITER //\n", "inside a statement"),
        ("spark", "begin declare x int; end; select 1", "outside of a procedure"),
        ("spark", "select r'a\\';b'", "raw string"),
        ("duckdb", "select 1 /* /* */", "comment inside a comment"),
        ("oracle", "create trigger t for insert on a compound trigger before statement is begin "
         "null; end before statement; end t;", "compound trigger"),
        ("sqlserver", "select 1\nGO 5\n", "repeats the batch"),
        ("sqlite", "select (1; select 2", "parenthesis"),
        ("sqlite", "select 'a; select 2", "a quote (') is opened"),
        ("sqlite", "select 1 /* a; select 2", "a comment is opened"),
        ("sqlite", "select 1 -- a\rselect 2", "carriage return"),
        ("postgresql", "select $a$;$b$", "a quote ($a$) is opened"),
        ("postgresql", 'select ${"a": 1}$$::json', "write $$${"),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_refused(kind: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidStatement) as refused:
        split(text, DIALECTS[kind])
    assert reason in str(refused.value)


def test_refusal_names_the_place() -> None:
    with pytest.raises(InvalidStatement, match="line 2, column 8: a quote"):
        split("select 1;\nselect 'a", DIALECTS["sqlite"])


def test_ten_times_the_statements_take_about_ten_times_as_long() -> None:
    script = "insert into t values (1, 'a;b', \"x\") /* c; */;\n" * 2_000

    once_s = shortest_s(lambda: texts("postgresql", script))
    assert keeps(30 * once_s, lambda: texts("postgresql", script * 10))
    assert len(texts("postgresql", script)) == 2_000
