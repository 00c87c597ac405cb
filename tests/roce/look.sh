# In the guest: ib-loopback over soft-RoCE, beside it perftest's own figure; then with the link down, and without an adapter.
set -u
failed=0
# What the probe says of one run, which must contain these words.
said() {
    local text
    text=$(timeout 400 ./muster-probe run ib-loopback --profile "$1" --format "$2" 2>&1)
    local format=$2
    shift 2
    for words in "$@"; do
        grep -qF -- "$words" <<<"$text" || {
            echo "MISSING: $words"
            failed=1
        }
    done
    # One document with every value says too much for a person.
    [ "$format" = json ] || sed 's/^/    /' <<<"$text"
}
echo '== no adapter'
said smoke table 'no InfiniBand or RoCE adapter on this node'
ip link add v0 type veth peer name v1
ip addr add 10.9.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
rdma link add rxe0 type rxe netdev v0
sleep 1
echo '== smoke'
said smoke table write-8MiB:rxe0:1 write-64KiB:rxe0:1
said smoke json 'type=RoCE-v2 address=::ffff:10.9.0.1' 'counters=' ' library=/'
echo '== standard, with perftest'
said standard table write-8MiB:rxe0:1 write-4KiB:rxe0:1 perftest-8MiB:rxe0:1
echo '== link down'
ip link set v1 down
sleep 1
said smoke table 'rxe0/1 is DOWN'
exit $failed
