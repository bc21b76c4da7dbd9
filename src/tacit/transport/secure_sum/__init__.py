"""Sums that a server learns without learning what was added."""

from tacit.transport.secure_sum.carrier import TRANSPORTS as TRANSPORTS
