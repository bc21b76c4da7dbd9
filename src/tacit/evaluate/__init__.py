"""How good is a model, told so that leaks and luck cannot pass for skill."""

from tacit.evaluate.null_model import NullAudit, not_applicable, null_audit
from tacit.evaluate.protocol import Evaluation, PerUser, evaluate, parse_metric
from tacit.evaluate.scorer import Rater, Scorer
from tacit.evaluate.significance import Comparison, compare_paired, holm

__all__ = [
    "Comparison",
    "Evaluation",
    "NullAudit",
    "PerUser",
    "Rater",
    "Scorer",
    "compare_paired",
    "evaluate",
    "holm",
    "not_applicable",
    "null_audit",
    "parse_metric",
]
