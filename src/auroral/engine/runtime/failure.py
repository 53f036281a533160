"""What goes wrong while the engine works, as an error for users."""

from __future__ import annotations

from auroral.errors import AuroralError, RunError
from auroral.spark.running.executor import StepExecutor
from auroral.spark.session.causes import FROM_SPARK, reason


def failure_of(error: BaseException, executor: StepExecutor) -> AuroralError:
    """Why the engine does nothing more; the cause of what nobody expected is kept for the log."""
    try:
        executor.require_alive()
    except AuroralError as ended:
        told: AuroralError = ended
    else:
        if isinstance(error, AuroralError):
            return error
        if isinstance(error, FROM_SPARK):
            told = RunError("SPARK_FAILED", reason(error))
        else:
            told = RunError("INTERNAL", f"{type(error).__name__}: {error}")
    if told is not error:
        told.__cause__ = error
    return told
