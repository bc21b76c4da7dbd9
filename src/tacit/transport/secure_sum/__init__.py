"""Sums that a server learns without learning what was added.

Both halves are state machines without input or output: bytes in, bytes out. Whoever carries the bytes drives
them, and does the same in a simulation (:func:`tacit.transport.secure_sum.in_process.summed`) and over a
network.

A device, once it knows its update::

    layout = Layout.of(update, facts)  # facts.received: the shapes the server sent
    model = sha256(broadcast).digest()
    terms = Terms(
        run, facts.round, exchange, model, layout.length, ring, rates, invited=how_many_by_the_rules
    )
    client = Client(terms, user, identity, directory, layout.vector(update, 0, ring), last_round=newest)
    send(client.start())
    for message in four_messages_from_the_server():  # roster, delivery, survivors, votes
        send(client.receive(message))  # SumAborted: say no more in this round

It notes ``terms.round`` as its newest round, where a restart cannot lose it, before the masked vector (the
answer to the second message) leaves. A device that restarts in between has dropped out; one that wants to go
on must store ``client.state`` *before* each answer leaves, so that nothing is ever answered twice.
``directory`` comes from enrolment and ``invited`` from what was agreed for the run, never from the server's
word in the round.

The server, with equal terms::

    server = Server(terms, directory, invited)
    while server.phase is not Phase.DONE:
        for user, message in whatever_arrives_until_the_phase_ends():
            server.receive(user, message)  # what it refuses is a drop-out, see .ignored
        for user, message in server.advance().items():  # SumAborted: too few are left
            send(user, message)
    update = layout.arrays(server.total)  # over server.survivors

When a phase ends is up to whoever drives it: everybody has answered, or a deadline has passed.
"""

from tacit.transport.secure_sum.carrier import TRANSPORTS as TRANSPORTS
