# Leaves a child behind that has left the group, the session and its parent, and writes.
(setsid sh -c 'trap "" TERM HUP INT; while :; do date +%N > alive; sleep 0.05; done' >/dev/null 2>&1 </dev/null &)
while [ ! -e alive ]; do sleep 0.01; done
echo ready
cat
