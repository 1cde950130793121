---------------------------- MODULE ResilientRow ----------------------------
(***************************************************************************)
(* One row of resilient state: switches with sessions, a chain of store    *)
(* nodes that lose their memory, an operator that changes the chain.       *)
(*                                                                         *)
(* Messages are never removed from `messages`, and any of them may be      *)
(* received at any time, any number of times, or never. So the network     *)
(* loses, repeats, delays and reorders.                                    *)
(*                                                                         *)
(* A write appends its number to the row, so a row tells which writes it   *)
(* contains and in which order. Outputs are linearizable if all rows that  *)
(* were output are prefixes of each other, and an output has every write   *)
(* that was seen before its packet came.                                   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Switches, Nodes,    \* Sets of numbers. All nodes are members of the first chain, in their order.
    Lease,              \* Ticks of a session.
    Drift,              \* Ticks that a store waits longer.
    Kinds,              \* Of inputs: TRUE for a write, FALSE for a read.
    IsWarm,             \* Whether the switches have leases at the start.
    MaxRenewals,        \* Of each switch.
    MaxTime, MaxInputs, MaxOperations, MaxEpochs, MaxCrashes, MaxAmnesias, MaxLayouts,
    \* Rules of the protocol. Each is TRUE; FALSE plants an error.
    FenceWrites,        \* A write counts only in its epoch.
    LeaseFromSend,      \* A switch counts its lease from the send of the renewal.
    AskUnderLease,      \* An ask is void when the lease ends under which it was sent.
    ReadsWait,          \* A read waits for the writes that it has seen.
    TailReplies         \* Only the tail replies.

VARIABLES
    now,
    switch,             \* By switch.
    node,               \* By node.
    layouts,            \* All layouts, in the order of their epochs.
    messages,
    inputs, crashes, amnesias,
    newest,             \* The longest row that was output.
    isWrong             \* Whether an output contradicts another one.

SwitchSymmetry == Permutations(Switches)

vars == <<now, switch, node, layouts, messages, inputs, crashes, amnesias, newest, isWrong>>

Max(a, b) == IF a > b THEN a ELSE b
IsPrefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a
Nobody == <<>>

-----------------------------------------------------------------------------
(* Layouts. A member is a node in one of its lives. *)

Newest == Len(layouts)
Position(members, n) == {i \in DOMAIN members : members[i] = <<n, node[n].life>>}
IsMember(epoch, n) == epoch > 0 /\ Position(layouts[epoch].members, n) # {}
IsHead(epoch, n) == epoch > 0 /\ layouts[epoch].members[1] = <<n, node[n].life>>
IsTail(epoch, n) == epoch > 0 /\ layouts[epoch].members[Len(layouts[epoch].members)] = <<n, node[n].life>>
IsLearner(epoch, n) == epoch > 0 /\ layouts[epoch].learner = <<n, node[n].life>>

(* The node before `n`: a member, or the tail before the learner. *)
IsPredecessor(epoch, p, n) ==
    \/ \E i \in Position(layouts[epoch].members, n) :
           i > 1 /\ layouts[epoch].members[i - 1] = <<p, node[p].life>>
    \/ IsLearner(epoch, n) /\ IsTail(epoch, p)

-----------------------------------------------------------------------------
NewSwitch(start) ==
    [start |-> start, layout |-> 1, end |-> IF IsWarm /\ start = 1 THEN Lease ELSE 0, phase |-> "none", ask |-> 0, epoch |-> 0, seq |-> 0, acked |-> 0,
     row |-> <<>>, parked |-> <<>>, held |-> <<>>]

EmptyNode(life) ==
    [life |-> life, layout |-> 0, isComplete |-> FALSE, isActive |-> FALSE, owner |-> Nobody, ask |-> 0,
     epoch |-> 0, seq |-> 0, row |-> <<>>, log |-> <<>>, count |-> 0, floor |-> 0, grace |-> 0,
     sessions |-> [s \in Switches |-> [start |-> 0, end |-> 0]]]

WarmNode == [EmptyNode(1) EXCEPT !.sessions = [s \in Switches |-> [start |-> 1, end |-> Lease + Drift]]]

InOrder == CHOOSE order \in [1..Cardinality(Nodes) -> Nodes] : \A i, j \in DOMAIN order : i < j => order[i] < order[j]

Init ==
    /\ now = 0
    /\ switch = [s \in Switches |-> NewSwitch(1)]
    /\ node = [n \in Nodes |-> [(IF IsWarm THEN WarmNode ELSE EmptyNode(1)) EXCEPT !.layout = 1, !.isComplete = TRUE, !.isActive = TRUE]]
    /\ layouts = <<[members |-> [i \in DOMAIN InOrder |-> <<InOrder[i], 1>>], learner |-> Nobody]>>
    /\ messages = {}
    /\ inputs = 0 /\ crashes = 0 /\ amnesias = 0
    /\ newest = <<>> /\ isWrong = FALSE

-----------------------------------------------------------------------------
(* Switches *)

IsLeased(s) == now < switch[s].end
IsOwned(s) == switch[s].phase = "owned" /\ IsLeased(s)
IsPending(w) == w.seq > w.acked

Request(s, w, kind) == [kind |-> kind, layout |-> w.layout, switch |-> s, start |-> w.start]
ReleaseOf(s, w, epoch) == Request(s, w, "release") @@ [epoch |-> epoch]

(* Outputs leave: rows with the row that was the newest one when their packets came. *)
Leave(outputs) ==
    LET rows == {o.row : o \in outputs} \cup {newest}
        longest == CHOOSE a \in rows : \A b \in rows : Len(b) <= Len(a)
    IN  /\ newest' = longest
        /\ isWrong' = (isWrong \/ (\E a \in rows : ~IsPrefix(a, longest))
                               \/ (\E o \in outputs : ~IsPrefix(o.since, o.row)))

NothingLeaves == UNCHANGED <<newest, isWrong>>

Held(w) == {w.held[i] : i \in DOMAIN w.held}

(* The program runs with a packet. Returns the switch, a message or none, and the outputs that leave at once. *)
Run(s, w, packet) ==
    IF packet.isWrite
    THEN LET row == Append(w.row, packet.number)
             after == [w EXCEPT !.row = row, !.seq = @ + 1,
                                !.held = Append(@, [seq |-> w.seq + 1, row |-> row, since |-> packet.since])]
             write == Request(s, w, "write") @@ [epoch |-> w.epoch, seq |-> w.seq + 1, row |-> row]
         IN  [switch |-> after, sent |-> {write}, outputs |-> {}]
    ELSE LET output == [seq |-> w.seq, row |-> w.row, since |-> packet.since]
         IN  IF IsPending(w) /\ ReadsWait
             THEN [switch |-> [w EXCEPT !.held = Append(@, output)], sent |-> {}, outputs |-> {}]
             ELSE [switch |-> w, sent |-> {}, outputs |-> {output}]

Input(s, isWrite) ==
    /\ inputs < MaxInputs
    /\ inputs' = inputs + 1
    /\ LET packet == [number |-> inputs + 1, isWrite |-> isWrite, since |-> newest]
           run == Run(s, switch[s], packet)
       IN  IF IsOwned(s)
           THEN /\ switch' = [switch EXCEPT ![s] = run.switch]
                /\ messages' = messages \cup run.sent
                /\ Leave(run.outputs)
           ELSE /\ switch[s].parked = <<>>
                /\ switch' = [switch EXCEPT ![s].parked = <<packet>>]
                /\ UNCHANGED messages
                /\ NothingLeaves
    /\ UNCHANGED <<now, node, layouts, crashes, amnesias>>

(* Renewals that would not extend the lease are left out. *)
Renew(s) ==
    /\ now + Lease > switch[s].end
    /\ Cardinality({m \in messages : m.kind = "renew" /\ m.switch = s}) < MaxRenewals
    /\ LET renewal == Request(s, switch[s], "renew") @@ [at |-> now]
       IN  /\ renewal \notin messages
           /\ messages' = messages \cup {renewal}
    /\ UNCHANGED <<now, switch, node, layouts, inputs, crashes, amnesias, newest, isWrong>>

Ask(s) ==
    /\ switch[s].parked # <<>> /\ switch[s].phase = "none" /\ IsLeased(s)
    /\ switch' = [switch EXCEPT ![s].phase = "asked", ![s].ask = @ + 1]
    /\ messages' = messages \cup {Request(s, switch[s], "acquire") @@ [ask |-> switch[s].ask + 1]}
    /\ UNCHANGED <<now, node, layouts, inputs, crashes, amnesias, newest, isWrong>>

(* A row that is being lost goes on once its writes are acknowledged. Returns the switch and what it sends. *)
Settled(s, w) ==
    CASE w.phase = "expired" /\ ~IsPending(w) -> [switch |-> [w EXCEPT !.phase = "none"], sent |-> {}]
      [] w.phase = "recalled" /\ ~IsPending(w) ->
             [switch |-> [w EXCEPT !.phase = "releasing"], sent |-> {ReleaseOf(s, w, w.epoch)}]
      [] OTHER -> [switch |-> w, sent |-> {}]

Become(s, settled) ==
    /\ switch' = [switch EXCEPT ![s] = settled.switch]
    /\ messages' = messages \cup settled.sent

TakeGrant(s, m) ==
    LET w == switch[s]
        owned == [w EXCEPT !.phase = "owned", !.epoch = m.epoch, !.seq = m.seq, !.acked = m.seq, !.row = m.row,
                           !.parked = <<>>, !.held = <<>>]
        run == IF w.parked = <<>> THEN [switch |-> owned, sent |-> {}, outputs |-> {}]
                                  ELSE Run(s, owned, w.parked[1])
    IN  CASE w.phase = "none" ->
                 /\ messages' = messages \cup {ReleaseOf(s, w, m.epoch)}
                 /\ UNCHANGED switch
                 /\ NothingLeaves
          [] w.phase = "asked" /\ w.ask = m.ask /\ IsLeased(s) -> Become(s, run) /\ Leave(run.outputs)
          [] OTHER -> FALSE

TakeAcknowledgement(s, m) ==
    LET w == switch[s]
        leave == {o \in Held(w) : o.seq <= m.seq}
        acked == [w EXCEPT !.acked = m.seq, !.held = SelectSeq(@, LAMBDA o : o.seq > m.seq)]
    IN  /\ w.phase \in {"owned", "recalled", "expired", "releasing"}
        /\ w.epoch = m.epoch /\ m.seq > w.acked /\ m.seq <= w.seq
        /\ Become(s, Settled(s, acked))
        /\ Leave(leave)

TakeReply(s, m) ==
    LET w == switch[s]
        end == (IF LeaseFromSend THEN m.at ELSE now) + Lease
    IN  CASE m.kind = "renewed" ->
                 /\ end > now /\ end > w.end
                 /\ switch' = [switch EXCEPT ![s].end = end]
                 /\ UNCHANGED messages
                 /\ NothingLeaves
          [] m.kind = "granted" -> TakeGrant(s, m)
          [] m.kind = "acked" -> TakeAcknowledgement(s, m)
          [] m.kind = "stale" ->
                 /\ w.phase \in {"owned", "recalled", "expired"} /\ w.epoch = m.epoch
                 /\ switch' = [switch EXCEPT ![s].phase = "none", ![s].held = <<>>]
                 /\ UNCHANGED messages
                 /\ NothingLeaves
          [] m.kind = "recall" /\ w.phase = "none" ->
                 /\ messages' = messages \cup {ReleaseOf(s, w, m.epoch)}
                 /\ UNCHANGED switch
                 /\ NothingLeaves
          [] m.kind = "recall" /\ w.phase = "owned" /\ w.epoch = m.epoch ->
                 /\ Become(s, Settled(s, [w EXCEPT !.phase = "recalled"]))
                 /\ NothingLeaves
          [] m.kind = "released" /\ w.phase = "releasing" /\ w.epoch = m.epoch ->
                 /\ switch' = [switch EXCEPT ![s].phase = "none"]
                 /\ UNCHANGED messages
                 /\ NothingLeaves
          [] OTHER -> FALSE

SwitchReceives(s) ==
    /\ \E m \in messages :
           /\ m.kind \in {"renewed", "granted", "acked", "stale", "recall", "released"}
           /\ m.switch = s /\ m.start = switch[s].start
           /\ TakeReply(s, m)
    /\ UNCHANGED <<now, node, layouts, inputs, crashes, amnesias>>

SwitchTakesLayout(s) ==
    /\ switch[s].layout < Newest
    /\ LET w == [switch[s] EXCEPT !.layout = Newest]
           again == CASE w.phase = "asked" -> {Request(s, w, "acquire") @@ [ask |-> w.ask]}
                      [] w.phase = "releasing" -> {ReleaseOf(s, w, w.epoch)}
                      [] w.phase # "none" /\ IsPending(w) ->
                             {Request(s, w, "write") @@ [epoch |-> w.epoch, seq |-> w.seq, row |-> w.row]}
                      [] OTHER -> {}
       IN  /\ switch' = [switch EXCEPT ![s] = w]
           /\ messages' = messages \cup again
    /\ UNCHANGED <<now, node, layouts, inputs, crashes, amnesias, newest, isWrong>>

Crash(s) ==
    /\ crashes < MaxCrashes
    /\ crashes' = crashes + 1
    /\ switch' = [switch EXCEPT ![s] = NewSwitch(@.start + 1)]
    /\ UNCHANGED <<now, node, layouts, messages, inputs, amnesias, newest, isWrong>>

(* Time passes. Leases end at once; a switch that is paused is one whose messages are late. *)
Tick ==
    /\ now < MaxTime
    /\ now' = now + 1
    /\ LET after(w) ==
               CASE w.end > now + 1 -> w
                 [] w.phase = "owned" -> [w EXCEPT !.phase = IF IsPending(w) THEN "expired" ELSE "none"]
                 [] w.phase = "asked" /\ AskUnderLease -> [w EXCEPT !.phase = "none"]
                 [] OTHER -> w
       IN  switch' = [s \in Switches |-> after(switch[s])]
    /\ UNCHANGED <<node, layouts, messages, inputs, crashes, amnesias, newest, isWrong>>

-----------------------------------------------------------------------------
(* Nodes *)

IsSessionLive(d, s, start) ==
    now < Max(d.grace, IF d.sessions[s].start = start THEN d.sessions[s].end ELSE 0)

IsRowOwned(d) == d.owner # Nobody /\ IsSessionLive(d, d.owner[1], d.owner[2])

Counts(d, op) == (op.epoch = d.epoch \/ ~FenceWrites) /\ op.seq > d.seq

(* Operations are kept for a successor, if there can be one. *)
Apply(d, op) ==
    LET kept == IF Cardinality(Nodes) > 1 THEN [d EXCEPT !.log = Append(@, op), !.count = @ + 1] ELSE d
    IN  CASE op.kind = "renew" ->
                 [kept EXCEPT !.sessions[op.switch] = [start |-> op.start, end |-> now + Lease + Drift]]
          [] op.kind = "grant" /\ op.epoch > d.epoch ->
                 [kept EXCEPT !.owner = <<op.switch, op.start>>, !.ask = op.ask, !.epoch = op.epoch]
          [] op.kind = "write" /\ Counts(d, op) -> [kept EXCEPT !.seq = op.seq, !.row = op.row]
          [] op.kind = "release" /\ op.epoch = d.epoch -> [kept EXCEPT !.owner = Nobody]
          [] OTHER -> kept

(* The reply of a node that has applied an operation. *)
ReplyTo(d, op) ==
    LET to == [switch |-> op.switch, start |-> op.start]
    IN  CASE op.kind = "renew" -> to @@ [kind |-> "renewed", at |-> op.at]
          [] op.kind = "grant" ->
                 to @@ [kind |-> "granted", ask |-> op.ask, epoch |-> op.epoch, seq |-> d.seq, row |-> d.row]
          [] op.kind = "write" /\ (op.epoch = d.epoch \/ ~FenceWrites) ->
                 to @@ [kind |-> "acked", epoch |-> op.epoch, seq |-> d.seq]
          [] op.kind = "write" -> to @@ [kind |-> "stale", epoch |-> op.epoch]
          [] op.kind = "release" -> to @@ [kind |-> "released", epoch |-> op.epoch]

Decide(n, op) ==
    LET d == node[n]
        after == Apply(d, op)
        replies == IsTail(d.layout, n) \/ ~TailReplies
        forward == [kind |-> "forward", layout |-> d.layout, from |-> n, index |-> after.count, op |-> op]
        sent == (IF replies THEN {ReplyTo(after, op)} ELSE {})
                \cup (IF IsTail(d.layout, n) /\ layouts[d.layout].learner = Nobody THEN {} ELSE {forward})
    IN  /\ d.count < MaxOperations
        /\ node' = [node EXCEPT ![n] = after]
        /\ messages' = messages \cup sent

HeadAcquires(n, m) ==
    LET d == node[n]
        asker == <<m.switch, m.start>>
        grant(epoch) == [kind |-> "grant", switch |-> m.switch, start |-> m.start, ask |-> m.ask, epoch |-> epoch]
        recall == [kind |-> "recall", switch |-> d.owner[1], start |-> d.owner[2], epoch |-> d.epoch]
    IN  /\ IsSessionLive(d, m.switch, m.start)
        /\ CASE d.owner = asker /\ m.ask = d.ask -> Decide(n, grant(d.epoch))
             [] d.owner = asker /\ m.ask < d.ask -> FALSE
             [] d.owner = asker \/ ~IsRowOwned(d) -> d.epoch < MaxEpochs /\ Decide(n, grant(d.epoch + 1))
             [] OTHER -> messages' = messages \cup {recall} /\ UNCHANGED node

HeadReceives(n) ==
    /\ IsHead(node[n].layout, n) /\ node[n].isActive
    /\ \E m \in messages :
           /\ m.kind \in {"renew", "acquire", "write", "release"} /\ m.layout = node[n].layout
           /\ IF m.kind = "acquire" THEN HeadAcquires(n, m) ELSE Decide(n, m)
    /\ UNCHANGED <<now, switch, layouts, inputs, crashes, amnesias, newest, isWrong>>

(* An operation comes from the predecessor, and is the next one. *)
NodeReceives(n) ==
    LET d == node[n]
    IN  /\ d.layout > 0 /\ d.isComplete
        /\ \E m \in messages :
               /\ m.kind = "forward" /\ m.layout = d.layout /\ m.index = d.count + 1
               /\ IsPredecessor(d.layout, m.from, n)
               /\ LET after == Apply(d, m.op)
                  IN  /\ node' = [node EXCEPT ![n] = after]
                      /\ messages' = messages \cup (IF IsTail(d.layout, n) THEN {ReplyTo(after, m.op)} ELSE {})
    /\ UNCHANGED <<now, switch, layouts, inputs, crashes, amnesias, newest, isWrong>>

(* A node sends an operation again, in its layout. *)
Resend(n) ==
    LET d == node[n]
    IN  /\ d.layout > 1 /\ d.isComplete
        /\ \E p \in Nodes : IsPredecessor(d.layout, n, p) /\ node[p].layout = d.layout /\ node[p].isComplete
               /\ node[p].count < d.count
               /\ LET index == node[p].count + 1
                      forward == [kind |-> "forward", layout |-> d.layout, from |-> n, index |-> index,
                                  op |-> d.log[index]]
                  IN  forward \notin messages /\ messages' = messages \cup {forward}
    /\ UNCHANGED <<now, switch, node, layouts, inputs, crashes, amnesias, newest, isWrong>>

(* A learner gets all rows, as they are after an operation. *)
Copy(n) ==
    LET d == node[n]
    IN  /\ ~d.isComplete /\ IsLearner(d.layout, n)
        /\ \E p \in Nodes : IsTail(d.layout, p) /\ node[p].layout = d.layout /\ node[p].isComplete
               /\ node' = [node EXCEPT ![n] = [node[p] EXCEPT !.life = d.life, !.isActive = FALSE, !.grace = 0,
                                                              !.sessions = EmptyNode(1).sessions]]
    /\ UNCHANGED <<now, switch, layouts, messages, inputs, crashes, amnesias, newest, isWrong>>

(* A new member is active when it has what its predecessor had when that took the layout. *)
Activate(n) ==
    LET d == node[n]
    IN  /\ IsMember(d.layout, n) /\ d.isComplete /\ ~d.isActive
        /\ \E p \in Nodes : IsPredecessor(d.layout, p, n) /\ node[p].layout = d.layout /\ node[p].isActive
               /\ d.count >= node[p].floor
        /\ node' = [node EXCEPT ![n].isActive = TRUE, ![n].floor = d.count]
    /\ UNCHANGED <<now, switch, layouts, messages, inputs, crashes, amnesias, newest, isWrong>>

NodeTakesLayout(n) ==
    LET d == node[n]
        isIn == IsMember(Newest, n) \/ IsLearner(Newest, n)
        forgets == ~isIn \/ (IsMember(d.layout, n) /\ ~IsMember(Newest, n))
        kept == IF forgets THEN EmptyNode(d.life) ELSE d
        isNewHead == IsHead(Newest, n) /\ ~IsHead(d.layout, n)
        grace == IF isNewHead THEN now + Lease + Drift ELSE kept.grace
    IN  /\ d.layout < Newest
        /\ node' = [node EXCEPT ![n] = [kept EXCEPT !.layout = Newest, !.floor = kept.count, !.grace = grace]]
    /\ UNCHANGED <<now, switch, layouts, messages, inputs, crashes, amnesias, newest, isWrong>>

Forget(n) ==
    /\ amnesias < MaxAmnesias
    /\ amnesias' = amnesias + 1
    /\ node' = [node EXCEPT ![n] = EmptyNode(@.life + 1)]
    /\ UNCHANGED <<now, switch, layouts, messages, inputs, crashes, newest, isWrong>>

-----------------------------------------------------------------------------
(* The operator changes one thing at a time, and relies on what nodes report of the newest layout. *)

Reports(n) == node[n].layout = Newest
NextLayout(members, learner) == layouts' = Append(layouts, [members |-> members, learner |-> learner])

Operate ==
    /\ Newest < MaxLayouts
    /\ LET last == layouts[Newest]
       IN  \/ /\ Len(last.members) > 1
              /\ \E n \in Nodes : IsMember(Newest, n) /\ Reports(n) /\ node[n].isActive
                                  /\ NextLayout(<<<<n, node[n].life>>>>, Nobody)
           \/ /\ last.learner = Nobody
              /\ \E n \in Nodes : ~IsMember(Newest, n)
                                  /\ NextLayout(last.members, <<n, node[n].life>>)
           \/ \E n \in Nodes : IsLearner(Newest, n) /\ Reports(n) /\ node[n].isComplete
                               /\ NextLayout(Append(last.members, <<n, node[n].life>>), Nobody)
    /\ UNCHANGED <<now, switch, node, messages, inputs, crashes, amnesias, newest, isWrong>>

-----------------------------------------------------------------------------
Next ==
    \/ Tick \/ Operate
    \/ \E s \in Switches :
           \/ (\E kind \in Kinds : Input(s, kind)) \/ Renew(s) \/ Ask(s) \/ SwitchReceives(s)
           \/ SwitchTakesLayout(s) \/ Crash(s)
    \/ \E n \in Nodes :
           \/ HeadReceives(n) \/ NodeReceives(n) \/ Resend(n) \/ Copy(n) \/ Activate(n)
           \/ NodeTakesLayout(n) \/ Forget(n)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* At most one switch uses the row. *)
SingleOwner == \A s, t \in Switches : IsOwned(s) /\ IsOwned(t) => s = t

(* Outputs are linearizable: see `Leave`. *)
Linearizable == ~isWrong

(* Each member on which a later layout may rely has all writes that were seen. *)
AcknowledgedSurvives ==
    \A n \in Nodes : IsMember(Newest, n) /\ node[n].isActive => IsPrefix(newest, node[n].row)

(* A row has each write once: no write was applied to a row that it did not see. *)
NoStaleWrite ==
    \A n \in Nodes : \A i, j \in DOMAIN node[n].row : node[n].row[i] = node[n].row[j] => i = j
=============================================================================
