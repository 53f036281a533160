# Reconstructed stub: a `ruff --fix` of the sql package emptied its author's file; replace freely.
from auroral.sql.expression import analyze as analyze_aggregate

__all__ = ["analyze_aggregate"]
