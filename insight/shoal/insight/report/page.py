"""The report as one page: figures first, then what has changed, what fails, and what is to come."""

from collections.abc import Iterator
from datetime import date
from html import escape

from shoal.insight.pages.charts import sparkline
from shoal.insight.pages.document import document
from shoal.insight.report.answers import Collected
from shoal.insight.report.sections import cluster, workflows
from shoal.insight.report.words import figures

_STYLE = """
body { max-width: 72rem; }
header { border-bottom: 1px solid var(--line); padding-bottom: .6rem; }
header h1 { margin: 0; font-size: 1.7rem; letter-spacing: -.01em; }
header p { margin: .2rem 0; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .8rem 0 1.4rem; }
nav a { color: var(--busy); text-decoration: none; } nav a:hover { text-decoration: underline; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .2rem; letter-spacing: -.01em; }
h3 { font-size: 1rem; margin: 1.4rem 0 .2rem; }
p.lead { margin: 0 0 .8rem; color: var(--dim); max-width: 46rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.2rem, 1fr));
  gap: .8rem; list-style: none; padding: 0; margin: 0; }
.tiles li { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: .8rem .9rem .6rem; display: flex; flex-direction: column; }
.tiles .name { color: var(--dim); font-size: .86rem; }
.tiles strong { font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums;
  letter-spacing: -.02em; }
.tiles .change { font-size: .86rem; color: var(--dim); min-height: 1.3em; }
.tiles .worse { color: var(--bad); } .tiles .better { color: var(--good); }
.tiles svg { margin-top: auto; }
.failure svg.sparkline { margin-left: -.2rem; }
svg.sparkline { width: 100%; max-width: 9rem; height: 1.75rem; display: block; }
td svg.sparkline { width: 7rem; margin-left: auto; }
.spark { fill: none; stroke: var(--busy); stroke-width: 1.5; stroke-linejoin: round; }
.spark-end { fill: var(--busy); }
svg.bar { width: 9rem; height: .7rem; display: inline-block; vertical-align: middle;
  border-radius: 4px; }
.track { fill: var(--line); fill-opacity: .45; } .hit { fill: transparent; }
.succeeded { fill: var(--busy); fill-opacity: .8; } .failed { fill: var(--bad); }
.stopped { fill: var(--wait); } .queue { fill: var(--wait); } .admission { fill: var(--busy); }
g:hover > .hit { fill: var(--line); fill-opacity: .4; }
.slots { fill: none; stroke: var(--wait); stroke-width: 2; }
.expected { fill: none; stroke: var(--busy); stroke-width: 2; }
.key { display: flex; margin: .2rem 0; flex-wrap: wrap; gap: .1rem 1rem; font-size: .86rem;
  color: var(--dim); }
.key i { display: inline-block; width: .75rem; height: .75rem; border-radius: 3px;
  margin-right: .35rem; vertical-align: -.08rem; }
.key .b { background: var(--busy); } .key .r { background: var(--bad); }
.key .o { background: var(--wait); }
.failure { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: .8rem 1rem; margin: .7rem 0; break-inside: avoid; }
.failure pre { margin: .1rem 0 .4rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, monospace; }
.failure .count { float: right; font-size: 1.15rem; font-weight: 600; margin-left: 1rem;
  font-variant-numeric: tabular-nums; }
.failure p { margin: .1rem 0; color: var(--dim); font-size: .9rem; overflow-wrap: anywhere; }
th[scope=row] { font-weight: 500; max-width: 22rem; overflow: hidden; text-overflow: ellipsis; }
td:has(svg.bar) { text-align: left; }
thead th { color: var(--dim); font-weight: 500; font-size: .86rem; }
caption { font-size: .86rem; }
details { margin: .4rem 0 1rem; } summary { cursor: pointer; color: var(--dim);
  font-size: .9rem; } summary:focus-visible, a:focus-visible { outline: 2px solid var(--busy);
  outline-offset: 2px; border-radius: 3px; }
footer { margin: 3rem 0 1rem; padding-top: .8rem; border-top: 1px solid var(--line);
  color: var(--dim); font-size: .86rem; }
.worse-text { color: var(--bad); } .better-text { color: var(--good); }
.empty { background: var(--panel); border: 1px dashed var(--line); border-radius: 10px;
  padding: 1.4rem; margin-top: 1.4rem; }
@media (max-width: 40rem) { body { margin: 1rem auto; font-size: 14px; } .wide { display: none; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .5rem; } .tiles strong { font-size: 1.3rem; }
  th, td { padding: .25rem .4rem; } th[scope=row] { max-width: 9.5rem; }
  figure svg { min-width: 46rem; } svg.bar { width: 5rem; } nav { font-size: .92rem; } }
@media print { :root { color-scheme: light; --ink: #000; --dim: #444; --line: #bbb; --paper: #fff;
  --panel: #fff; --busy: #1f6feb; --wait: #b35900; --bad: #c0272d; --good: #1a7f37; }
  body { margin: 0; max-width: none; font-size: 11pt; } nav { display: none; }
  section, figure, .tiles li { break-inside: avoid; } * { print-color-adjust: exact; } }
"""


def page(found: Collected) -> str:
    """Return the report as HTML."""
    title = _title(found)
    return document(title, [*_head(found, title), *_body(found), *_foot(found)], _STYLE)


def _title(found: Collected) -> str:
    of = f" in {found.project}" if found.project else ""
    if found.is_empty:
        return f"What ran{of}: no results yet"
    return f"What ran{of}: {_days(found.summary['first'], found.summary['last'])}"


def _head(found: Collected, title: str) -> Iterator[str]:
    yield f"<header><h1>{escape(title)}</h1>"
    at = found.at.strftime("%Y-%m-%d %H:%M UTC")
    if not found.is_empty:
        summary = found.summary
        before = _days(summary["before_first"], summary["before_last"])
        yield f'<p class="dim">Compared with {escape(before)}. Results up to '
        yield f"{escape(str(summary['until']))}, for {summary['days']} of the days. "
        yield "Days are UTC.</p>"
    yield f'<p class="dim">From {escape(found.source)}, {escape(at)}</p></header>'


def _body(found: Collected) -> Iterator[str]:
    if found.is_empty:
        yield '<div class="empty"><p>There are no results of run history yet.</p><p class="dim">'
        yield "Runs are exported, jobs turn them into results, and masters load these: "
        yield "<code>shoal insight status</code> shows how far the export is, and docs/insight.md "
        yield "says how to run the jobs.</p></div>"
        return
    parts = [*workflows.sections(found), *cluster.sections(found)]
    yield '<nav aria-label="Sections">'
    yield from (f'<a href="#{part.key}">{escape(part.heading)}</a>' for part in parts)
    yield "</nav>"
    yield from _tiles(found)
    for part in parts:
        yield f'<section id="{part.key}" aria-labelledby="{part.key}-heading">'
        yield f'<h2 id="{part.key}-heading">{escape(part.heading)}</h2>'
        yield f'<p class="lead">{escape(part.lead)}</p>'
        yield from part.body
        yield "</section>"


def _tiles(found: Collected) -> Iterator[str]:
    keys = ("runs", "failure_rate", "late_rate", "retry_rate", "wait_mean_s", "busy_s")
    yield '<ul class="tiles" aria-label="Figures">'
    for key, one in zip(keys, figures(found.summary), strict=True):
        judged = {None: "", True: " worse", False: " better"}[one.is_worse]
        line = sparkline([day[key] for day in found.summary["daily"]], f"{one.name} by day")
        yield f'<li><span class="name">{escape(one.name)}</span><strong>{escape(one.text)}</strong>'
        yield f'<span class="change{judged}">{escape(one.change)}</span>{line.html}</li>'
    yield "</ul>"


def _foot(found: Collected) -> Iterator[str]:
    yield "<footer><p>Counts, means and highest values are exact. A percentile of several days is "
    yield "the mean of the percentiles of these days, weighted by how many values each had. Late: "
    yield "beyond the deadline of the workflow. A day has the runs and attempts that ended on it."
    yield "</p></footer>"


def _days(first: str, last: str) -> str:
    """Return days as people write them: ``4 – 31 January 2026``."""
    one, other = date.fromisoformat(first), date.fromisoformat(last)
    end = f"{other.day} {other:%B %Y}"
    if one == other:
        return end
    if (one.year, one.month) == (other.year, other.month):
        return f"{one.day} – {end}"
    if one.year == other.year:
        return f"{one.day} {one:%B} – {end}"
    return f"{one.day} {one:%B %Y} – {end}"
