#!/usr/bin/env bash
# Kills a server's writers with kill -9 while clients write, and accounts for every row afterwards.
#
#   PYTHON=… PSQL=… kill_writers.sh DIRECTORY KILLS SEED
#
# Clients are psql sessions that are fed statements without end. psql sends a statement after the
# answer to the one before, so when a session breaks, as many statements are acknowledged as it
# printed answers, the next one's fate is unknown, and the rest was never sent.
set -euo pipefail
export LC_ALL=C

directory=$1 kills=$2 RANDOM=$3
cd "$directory"
server=

# pid and parent of every process
parents() {
    sed -n 's/^\([0-9]*\) (.*) [A-Za-z] \([0-9]*\) .*/\1 \2/p' /proc/[0-9]*/stat 2>/dev/null || true
}

tree_of() {
    parents | awk -v root="$1" '
        { parent[$1] = $2 }
        END {
            wanted[root]
            do {
                grew = 0
                for (pid in parent)
                    if (!(pid in wanted) && parent[pid] in wanted) { wanted[pid]; grew = 1 }
            } while (grew)
            for (pid in wanted) print pid
        }'
}

# the processes of the server that run a program
children_running() {
    parents | while read -r pid parent; do
        if [[ $parent == "$server" ]] && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null |
            grep -q "evertide.cli.$1"; then
            echo "$pid"
        fi
    done
}

start_server() {
    : >ready
    "$PYTHON" -m evertide.cli.main serve --data data --adapters 2 --sql-addr 127.0.0.1:0 \
        --http-addr 127.0.0.1:0 --internal-sql-addr 127.0.0.1:0 >ready 2>>server.log &
    server=$!
    until grep -q '^evertide ready' ready; do
        kill -0 "$server" || { echo "the server ended"; tail server.log; exit 1; }
        sleep 0.05
    done
    sed -n 's/.* sql=\([^ ]*\) .*/\1/p' ready | tr , '\n' >addresses.new
    mv addresses.new addresses
}

kill_tree() {
    # shellcheck disable=SC2046 # one word per pid
    kill -9 $(tree_of "$server") 2>/dev/null || true
    wait "$server" 2>/dev/null || true
}

finish() {
    touch stop
    kill_tree
    wait
}
trap finish EXIT

run_sql() { # ADAPTER, then psql's arguments
    local address
    address=$(sed -n "$1p" addresses)
    shift
    "$PSQL" -X -v ON_ERROR_STOP=1 "postgresql://materialize@$address/materialize" "$@"
}

statements() { # WRITER FROM: one line per number, without end
    local line="INSERT INTO t VALUES ('$1', #)"
    case $1 in
    pair*) # psql sends what is joined by \; as one message
        line="BEGIN\\\\; $line\\\\;"
        line="$line INSERT INTO halves VALUES ('$1', #, 1), ('$1', #, 2)\\\\; COMMIT"
        ;;
    count) line="UPDATE counter SET n = n + 1" ;;
    esac
    seq "$2" 1000000000 | awk -v line="$line;" '{ text = line; gsub("#", $1, text); print text }'
}

# what psql prints once a line of the writer's statements is acknowledged
answer_of() {
    case $1 in
    pair*) echo COMMIT ;;
    count) echo 'UPDATE 1' ;;
    *) echo 'INSERT 0 1' ;;
    esac
}

write_forever() { # WRITER ADAPTER
    local next=1 adapter=$2 answered
    while [[ ! -e stop ]]; do
        { statements "$1" "$next" || true; } 2>/dev/null |
            run_sql "$adapter" >"answers.$1" 2>>"errors.$1" || true
        answered=$(grep -cxF "$(answer_of "$1")" "answers.$1" || true)
        seq -f "$1 %.0f" "$next" $((next + answered - 1)) >>"acknowledged.$1"
        next=$((next + answered))
        echo "$1 $next" >>"unknown.$1"
        next=$((next + 1))
        adapter=$((3 - adapter))
        sleep 0.1
    done
}

# sessions keep count when they end; what they print meanwhile is as good
count_answers() { { cat answers.* acknowledged.* 2>/dev/null || true; } | wc -l; }

wait_for_writes() { # COUNT
    local before
    before=$(count_answers)
    for _ in $(seq 600); do
        (($(count_answers) >= before + $1)) && return
        sleep 0.05
    done
    echo "nobody can write"
    tail -n 20 server.log
    exit 1
}

kill_one() { # NUMBER
    local program=adapter victims=()
    if (($1 % 5 == 0)); then
        kill_tree
        start_server
        return
    fi
    if (($1 % 20 == 7)); then program=replica; fi
    until ((${#victims[@]} > 0)); do # a victim of before may be on its way back
        sleep 0.05
        mapfile -t victims < <(children_running $program)
    done
    kill -9 "${victims[RANDOM % ${#victims[@]}]}"
}

start_server
run_sql 1 -q -c "CREATE TABLE t (w text, i int)" \
    -c "CREATE TABLE halves (w text, i int, half int)" \
    -c "CREATE TABLE counter (n bigint)" -c "INSERT INTO counter VALUES (0)" \
    -c "CREATE MATERIALIZED VIEW v AS SELECT w, count(*) AS n, max(i) AS last FROM t GROUP BY w"
for writer in row pair1 pair2 count; do
    write_forever "$writer" $((RANDOM % 2 + 1)) &
done
killed=0
while ((killed < kills)); do
    wait_for_writes 20
    sleep "0.$((RANDOM % 5))"
    kill_one $((killed + 1))
    killed=$((killed + 1))
done
wait_for_writes 20
touch stop
kill_tree
wait
start_server

ask() { run_sql 1 -qAt -F ' ' -c "$1" | sort; }
cat acknowledged.{row,pair1,pair2} | sort >acknowledged
cat unknown.{row,pair1,pair2} | sort >unknown
ask "SELECT w, i FROM t" >found
lost=$(comm -23 acknowledged found | wc -l)
twice=$(uniq -d found | wc -l)
invented=$(sort -m acknowledged unknown | comm -13 - found | wc -l)
awk '$1 ~ /^pair/ { print $1, $2, 1; print $1, $2, 2 }' found | sort >whole
torn=$(ask "SELECT w, i, half FROM halves" | diff - whole | grep -c '^[<>]' || true)
counted=$(ask "SELECT n FROM counter") least=$(wc -l <acknowledged.count)
most=$((least + $(wc -l <unknown.count)))
ask "SELECT w, count(*), max(i) FROM t GROUP BY w" >grouped
view=$(ask "SELECT * FROM v" | diff - grouped | grep -c '^[<>]' || true)
echo "kills=$killed acknowledged=$(wc -l <acknowledged) unknown=$(wc -l <unknown)" \
    "found=$(wc -l <found) lost=$lost twice=$twice invented=$invented torn=$torn" \
    "counted=$counted least=$least most=$most view=$view"
((lost + twice + invented + torn + view == 0 && least <= counted && counted <= most))
