"""What every benchmark has: Spark, how much work, where files go, and parts one may choose from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import auroral as au
from auroral.errors import AuroralError, UsageError, closest
from benchmarks.report import Report

FAILED = "Experiments that failed"


@dataclass(frozen=True)
class Lab:
    """One run of a benchmark; `peers` are interpreters that have other systems."""

    spark: SparkSession
    quick: bool
    place: Path
    peers: Sequence[Path] = ()
    plots: Path | None = None
    """Where charts go that an experiment draws by itself."""

    @property
    def files(self) -> int:
        """Files of a train, so that plain Spark can read it with every core."""
        return min(os.cpu_count() or 2, 8)

    def rows(self, full: int) -> int:
        """So many tuples, groups, keys or queries; a tenth if in a hurry."""
        return max(full // 10, 1) if self.quick else full

    def steps(self, full: int, quick: int) -> int:
        """So many trains."""
        return quick if self.quick else full

    def seconds(self, full: float) -> float:
        """So long; a hundredth if in a hurry."""
        return full / 100 if self.quick else full

    def say(self, text: str) -> None:
        """Tell a person who watches how far we are."""
        if sys.stderr.isatty():
            sys.stderr.write(f"bench: {text}\n")
            sys.stderr.flush()

    def engine(
        self,
        network: au.Network,
        train: int,
        *,
        background: bool = False,
        state: Path | None = None,
    ) -> au.Engine:
        """An engine on the shared session; without threads, so that trains are what we say."""
        return au.Engine(network, spark=self.spark, train=train, background=background, state=state)


Experiments = Mapping[str, Callable[[Report, Lab], None]]


def choose(experiments: Experiments, only: Sequence[str]) -> list[str]:
    """The experiments to run, in their own order."""
    for name in only:
        if name not in experiments:
            raise UsageError(
                "UNKNOWN_EXPERIMENT",
                f"there is no experiment {name}; there are {', '.join(experiments)}",
                hint=closest(name, experiments),
            )
    return [name for name in experiments if name in only or not only]


def run_experiments(
    experiments: Experiments, report: Report, lab: Lab, names: Sequence[str]
) -> None:
    """Run each; one that fails is told, and the others go on."""
    failed: list[tuple[str, str]] = []
    for name in names:
        try:
            experiments[name](report, lab)
        except AuroralError as error:
            lab.say(f"{name} failed: {error}")
            failed.append((name, str(error)))
    if failed:
        report.section(FAILED, "experiment", "why").rows.extend(failed)
    report.bar("experiments that ran", 1 - len(failed) / len(names), least=1.0)
