"""What a denoising client reads from its letters, alone and together with the server."""

import numpy as np

from tacit.audit.evidence import Evidence, Metrics, Skipped
from tacit.audit.peers import linked, remaining, sender_of
from tacit.audit.reconstruction import Upload
from tacit.audit.transcript import Letter
from tacit.audit.truth import agreement


def denoiser_alone(evidence: Evidence) -> Metrics | Skipped:
    """A5, first half: the vector and the mean rating of whoever wrote a letter."""
    if evidence.gradient is None or not evidence.transcript.letters:
        return Skipped("no client writes gradient rows to another client")
    errors, misses, guesses = [], [], []
    straight = min(letter.round for letter in evidence.transcript.letters)
    for letter, user in _with_senders(evidence):
        if letter.round != straight:
            continue
        found = sender_of(letter.upload, evidence.gradient)
        mean = float(evidence.truth.ratings(user).mean())
        errors.append(evidence.vector_error(found.vector, user, letter.round))
        misses.append(abs(found.mean - mean))
        guesses.append(abs(evidence.prior.overall(user) - mean))
    return {
        "vector_error": float(np.median(errors)),
        "vectors_found": float((np.array(errors) < 1e-3).mean()),
        "mean_rating_error": float(np.median(misses)),
        "prior_mean_rating_error": float(np.median(guesses)),
        "letters": len(errors),
    }


def denoiser_with_server(evidence: Evidence) -> Metrics | Skipped:
    """A5, second half: who wrote each letter, and so which items that person really rated."""
    if not evidence.transcript.letters:
        return Skipped("no client writes gradient rows to another client")
    log = _newest_log(evidence)
    known = [
        (letter, user)
        for letter, user in _with_senders(evidence)
        if letter.round == log[0] and user in log[1]
    ]
    if not known:
        return Skipped(evidence.unseen or "the server kept no uploads of the rounds whose letters were kept")
    owners = linked([letter.upload for letter, _ in known], log[1])
    right = [owner == user for owner, (_, user) in zip(owners, known, strict=True)]
    sets = [
        owner >= 0 and agreement(remaining(log[1][owner], letter.upload), evidence.truth.items(user))[2]
        for owner, (letter, user) in zip(owners, known, strict=True)
    ]
    return {
        "linked": float(np.mean(right)),
        "rated_sets_exact": float(np.mean(sets)),
        "prior_linked": 1.0 / len(log[1]),
        "letters": len(known),
    }


def _with_senders(evidence: Evidence) -> list[tuple[Letter, int]]:
    """Letters with whoever wrote them: for scoring only."""
    places: dict[tuple[int, int], int] = {}
    found = []
    for letter in evidence.transcript.letters:
        inbox = letter.round, letter.to
        place = places[inbox] = places.get(inbox, -1) + 1
        found.append((letter, int(evidence.truth.senders[inbox][place])))
    return found


def _newest_log(evidence: Evidence) -> tuple[int, dict[int, Upload]]:
    """What the server holds of the last round whose letters were kept."""
    newest = max(letter.round for letter in evidence.transcript.letters)
    dated = ((user, one) for user, sent in evidence.transcript.uploads.items() for one in sent)
    return newest, {user: one.upload for user, one in dated if one.round == newest}
