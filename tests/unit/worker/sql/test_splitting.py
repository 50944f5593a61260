"""A text of SQL is taken apart where its statements end, and every byte of it is kept."""

from itertools import chain, zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.data_sources import SourceKind
from shoal.worker.types.sql.statements.dialects import DIALECTS
from shoal.worker.types.sql.statements.errors import InvalidStatement
from shoal.worker.types.sql.statements.scripts import Script, split
from tests.support.growth import keeps, shortest_s

K = SourceKind


def texts(kind: SourceKind, text: str, separator: str = "") -> list[str]:
    return [one.text for one in split(text, DIALECTS[kind], separator).statements]


def joined(script: Script) -> str:
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
def test_statements_and_separators_are_the_text(
    kind: SourceKind, text: str, separator: str
) -> None:
    try:
        script = split(text, DIALECTS[kind], separator)
    except InvalidStatement:
        return
    assert joined(script) == text
    assert all(text[one.start :].startswith(one.text) for one in script.statements)
    assert all(one.text.lstrip() == one.text != "" for one in script.statements)


WHOLE = {
    K.POSTGRESQL: [
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
    K.MARIADB: [
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
    K.SQLITE: [
        "select [a;b], `c;d`, \"e;f\", 'x\\'",
        "create temp trigger t after insert on a begin insert into b values (case when 1 then 2 "
        "end); update c set d = 1; end",
        "select 1 /* ; /* ; */",
    ],
    K.TRINO: [
        "create function f(x bigint) returns bigint begin if x > 1 then return 1; end if; end"
    ],
    K.SPARK: ["select 'a\\';b', \"c;d\", `e;f`, r'raw;'"],
    K.CLICKHOUSE: ["select 'a\\';b', `c\\`;d`, $x$;$x$"],
    K.DUCKDB: ["select $$a;b$$, e'\\';'"],
}


@given(kind=st.sampled_from(list(WHOLE)), data=st.data())
@settings(max_examples=300, deadline=None)
def test_each_statement_of_a_script_is_found(kind: SourceKind, data: st.DataObject) -> None:
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
        (K.MYSQL, "insert into a values (1); insert into b values (2);", 2),
        (K.HIVE, "select * from test1;\nselect * from test2;", 2),
        (K.HIVE, "select concat('11', ';', '33');", 1),
        (K.POSTGRESQL, 'select $j${"key": ["value; with semicolon"]}$j$::json', 1),
        (K.POSTGRESQL, "prepare a as select $1||$2; prepare b as select $1||$3", 2),
        (K.ORACLE, "select q'[it's; ok]', 'x\\' from dual; select 2 from dual", 2),
        (K.ORACLE, BLOCK, 1),
        (K.ORACLE, f"{BLOCK}\n/\n{PACKAGE}\n/\nselect 1 from dual\n/\n", 3),
        (K.ORACLE, f"{PACKAGE}\n{BLOCK}\nselect 1 from dual;", 3),
        (K.ORACLE, "<<l>> declare x number; begin null; end l; select 1 from dual", 2),
        (K.ORACLE, "create package s as procedure p; end s; create type t as object (a int);", 2),
        (K.ORACLE, "create function g return number as language java name 'x'; select 2 from d", 2),
        (K.ORACLE, "create trigger t for insert on a compound trigger before statement is begin "
         "null; end before statement; end t;\n/\nselect 1 from dual", 2),
        (K.ORACLE, "select 4\n / 2 from dual", 1),
        (K.SQLSERVER, "create table [a;b] (x int); select 1\nGO\nselect '\nGO\n'\ngo -- done\n", 2),
        (K.SQLSERVER, "select 1 go\n", 1),
    ],
)  # fmt: skip
def test_number_of_statements(kind: SourceKind, text: str, expected: int) -> None:
    assert len(texts(kind, text)) == expected


def test_unit_of_oracle_keeps_its_semicolon_and_a_statement_has_none() -> None:
    assert texts(K.ORACLE, f"{BLOCK}\n/\nselect 1 from dual;") == [BLOCK, "select 1 from dual"]


def test_delimiter_is_obeyed_and_not_sent() -> None:
    script = """select 1;
DELIMITER $$
CREATE PROCEDURE p() IF a THEN SELECT 'x$$;'; END IF$$
delimiter ;
SELECT 2
"""
    assert texts(K.MARIADB, script) == [
        "select 1",
        "CREATE PROCEDURE p() IF a THEN SELECT 'x$$;'; END IF",
        "SELECT 2",
    ]


@pytest.mark.parametrize("text", ["", " \n", ";;\n;", "-- nothing\n", "/* nothing */;"])
def test_nothing_to_run(text: str) -> None:
    assert texts(K.SQLITE, text) == []


def test_comments_belong_to_the_statement_behind_them() -> None:
    assert texts(K.SQLITE, "-- a\nselect 1; -- b\nselect 2 -- c\n") == [
        "-- a\nselect 1",
        "-- b\nselect 2 -- c",
    ]


def test_separator_ends_a_statement_where_it_ends_a_line() -> None:
    text = "select ';; ' ;;  \n\nselect 2;\nselect 3\n;;\n"
    assert texts(K.SQLITE, text, ";;") == ["select ';; '", "select 2;\nselect 3"]


# -- what is not sure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (K.MARIADB, "create procedure p() if a then select 1; end if", "body without BEGIN"),
        (K.MARIADB, "create procedure p() begin select end from t; end", "keyword or a name"),
        (K.MARIADB, "create procedure p() begin select begin from t; end; select 1", "no END"),
        (K.MARIADB, "if a then select 1; end if", "outside of a procedure"),
        (K.MARIADB, "create package p as procedure a; end; select 1", "a package"),
        (K.MARIADB, "/*!50003 select 1", "never closed"),
        (K.MARIADB, "select 1\nDELIMITER //\n", "inside a statement"),
        (K.SPARK, "begin declare x int; end; select 1", "outside of a procedure"),
        (K.SPARK, "select r'a\\';b'", "raw string"),
        (K.DUCKDB, "select 1 /* /* */", "comment inside a comment"),
        (K.ORACLE, "create trigger t for insert on a compound trigger before statement is begin "
         "null; end before statement; end t;", "compound trigger"),
        (K.SQLSERVER, "select 1\nGO 5\n", "repeats the batch"),
        (K.SQLITE, "select (1; select 2", "parenthesis"),
        (K.SQLITE, "select 'a; select 2", "a quote (') is opened"),
        (K.SQLITE, "select 1 /* a; select 2", "a comment is opened"),
        (K.SQLITE, "select 1 -- a\rselect 2", "carriage return"),
        (K.POSTGRESQL, "select $a$;$b$", "a quote ($a$) is opened"),
        (K.POSTGRESQL, 'select ${"a": 1}$$::json', "write $$${"),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_refused(kind: SourceKind, text: str, reason: str) -> None:
    with pytest.raises(InvalidStatement) as refused:
        split(text, DIALECTS[kind])
    assert reason in str(refused.value)


def test_refusal_names_the_place() -> None:
    with pytest.raises(InvalidStatement, match="line 2, column 8: a quote"):
        split("select 1;\nselect 'a", DIALECTS[K.SQLITE])


def test_ten_times_the_statements_take_about_ten_times_as_long() -> None:
    script = "insert into t values (1, 'a;b', \"x\") /* c; */;\n" * 2_000

    once_s = shortest_s(lambda: texts(K.POSTGRESQL, script))
    assert keeps(30 * once_s, lambda: texts(K.POSTGRESQL, script * 10))
    assert len(texts(K.POSTGRESQL, script)) == 2_000
