"""Network files: the example of the file format, and one that uses every box and key."""

from __future__ import annotations

from pathlib import Path

SOLDIERS = """\
network: soldiers
streams:
  reports:
    schema: {sid: int, time: bigint, pos: int}      # Spark SQL type names
    progress: {on: time, delay: 5}                  # how this stream makes progress; optional
    source: {format: kafka, topic: reports}         # optional: may be bound at run time
tables:
  accounts: {schema: {vid: int, balance: double}, key: [vid], store: "sqlite:///accounts.db"}
boxes:
  across: {box: filter, input: reports, where: "pos >= 30"}
  crowd:  {box: aggregate, input: across, order: {on: time, slack: 1}, window: {size: 1}, compute: {cnt: "count(*)"}}
  enough: {box: filter, input: crowd, where: "cnt >= 3"}
queries:
  hot: "SELECT sid, pos FROM reports WHERE pos > 90 AND time < 100"
connection_points:
  recent: {on: across, keep: "2 hours", key: sid}   # or keep: {rows: 100000}
groups:
  border: [across, crowd, enough]                   # superboxes a person named, for zooming
outputs:
  alerts:
    from: enough
    qos: {latency: [[0, 1], [2, 1], [10, 0]], loss: [[1, 1], [0, 0]], value: {on: cnt, graph: [[3, 0.2], [10, 1]]}}
    sink: {format: kafka, topic: alerts}            # optional
engine: {headroom: 0.8, scheduler: auto}            # optional
"""  # noqa: E501

EVERY = """\
network: every
streams:
  cars:
    schema: {vid: int, seg: int, at: timestamp, speed: double}
    progress: {on: at, delay: 5 seconds, heartbeat: {lag: 30}, by: [seg]}
  tolls:
    schema: {vid: int, at: timestamp, toll: "decimal(8,2)"}
    progress: {on: at, ordered: true}
  signals:
    schema: "vid int, n bigint"
    progress: {on: n, punctuated: true}
tables:
  accounts: {schema: {vid: int, balance: double}, key: [vid], store: "postgresql://db/accounts"}
boxes:
  lanes:
    box: filter
    input: cars
    routes: {slow: speed < 40, fast: speed > 100}
  tagged: {box: map, input: lanes.rest, keep: "*", compute: {speed: "speed * 3.6", far: "seg > 9"}}
  slim: {box: map, input: cars, keep: [vid, at]}
  some: {box: union, inputs: [lanes.slow, lanes.fast]}
  sorted: {box: bsort, input: cars, order: {on: at, slack: 2, by: [seg]}}
  once: {box: dedup, input: cars, keys: [vid], order: {on: at}}
  counted: {box: number, input: cars, as: nth}
  means:
    box: aggregate
    input: cars
    order: {on: at, by: [seg]}
    window: {size: 10 minutes, advance: 5 minutes, timeout: 60}
    compute: {mean: avg(speed), cars: count(DISTINCT vid)}
  hundreds:
    box: aggregate
    input: cars
    order: {on: tup#, slack: 0}
    window: {size: 100, align: first}
    compute: {top: max(speed)}
  trips:
    box: aggregate
    input: signals
    order: {on: n, slack: 3, by: [vid]}
    window: {advance: n % 10 = 0}
    compute: {least: min(n)}
  paid:
    box: join
    inputs: [cars, tolls]
    on: left.vid = right.vid
    left: {on: at, slack: 1}
    right: {on: at}
    within: 30 s
  numbered:
    box: join
    inputs: [cars, tolls]
    left: {on: tup#, by: [seg]}
    right: {on: tup#}
    range: [2, -1]
  ahead:
    box: join
    inputs: [signals, signals]
    left: {on: n}
    right: {on: n}
    range: [-1, 5]
    timeout: 7
  known: {box: join, inputs: [tolls, accounts], on: left.vid = right.vid}
  nearby:
    box: resample
    inputs: [tolls, cars]
    left: {on: at}
    right: {on: at, by: [seg]}
    within: 1 minute
    timeout: 30
    compute: {mean: avg(speed), off: avg(right.speed) - left.toll}
  balance: {box: read, input: tolls, sql: "SELECT balance, :toll AS toll FROM accounts WHERE vid = :vid"}
  charge:
    box: update
    input: tolls
    sql: "UPDATE accounts SET balance = balance - :toll WHERE vid = :vid"
    report: {vid: vid, charged: toll}
  held: {box: wait_for, inputs: [tolls, charge], match: held.vid = signal.vid, timeout: 2.5}
  totals: {box: latch, input: tolls, by: [vid], compute: {balance: sum(double(toll))}, table: accounts}
  late: {box: filter, input: means.late, where: speed > 0}
connection_points:
  history: {on: lanes.fast, keep: {rows: 1000}}
queries:
  fast: "SELECT vid, count(*) AS n FROM cars [RANGE 1 min, SLIDE 1 min, WA at] GROUP BY vid"
outputs:
  paid: {from: paid}
  fast: {from: fast, qos: {value: {on: n, graph: [[1, 0], [5, 1]]}}}
engine: {headroom: 1, scheduler: rr, train: 500}
"""  # noqa: E501


def written(directory: Path, text: str, name: str = "net.yaml") -> Path:
    """A file with that text."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path
