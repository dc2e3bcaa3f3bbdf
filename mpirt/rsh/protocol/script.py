r"""
The wrapper: the shell text that runs beside a command in its pod.

Owns: every line that a worker's /bin/sh executes for us. It runs under dash, bash and busybox sh with builtins
alone: `dd` makes stdin fast and `sleep` lets the watchdog tick, and it does without either.

Its processes, all children of the leader, which is the process that the exec started:

    guard | watch | feed | run | heir
                            '-> the command

- `watch` reads the exec's stdin and is the lifeline. It never writes to the exec's stdout or stderr and never
  into a full pipe, so nothing keeps it from seeing that the client is gone.
- `guard` counts the time since the client's last word, and answers its beats. It also sees that the leader is
  gone: containerd 2.4 kills it when the connection breaks, and leaves the exec's stdin open.
- `feed` writes the command's stdin, may block there for as long as it must, and tells when it took a piece. It
  is left out when there is no stdin to give.
- `run` keeps the command in the foreground (a shell starts what it puts in the background with SIGINT ignored),
  reports how it ended, and then ends the others.
- `heir` passes the code on as the exec's own. When `run` is killed, by a command that kills its parent for one,
  nobody can say any more how the command ends: then `heir` ends all of it, and the exec with 137.

The order of things: HELLO, the client's GO, START, the command, EXIT on stderr and END on stdout, with `open`
where something that the command left behind still has the output open.

Each passes its pid down the pipe as its first line, so `run` knows whom to end without a scan of /proc.

The client's lines: an empty one is a sign of life, `B` one that wants an answer, `D<n>` and n raw bytes or
`P<text>` are stdin, `E` is its end. `S<signal>` passes a signal on, to the command's process group. `K<signal>`
gives it to all of the command and means the end: once the command is gone the rest of its session goes too. It
comes again and again, for what is started meanwhile. The end of the stream means TERM, a grace, KILL.

Who gets a signal is the keeper's rule (docs/keeper.md): not a shell that waits for a process which gets it too.

What the command could see must not change: names are prefixed, since an exported variable that we set here
would change for the command; traps are handlers, since an ignored signal stays ignored in what is started.
"""

from __future__ import annotations

# The first line, short so that the client has its answer while the second, the script, is still being read.
GREETING = r"""
mpirt_nonce=NONCE; printf '\001mpirt-%s HELLO\n' "$mpirt_nonce" >&2; IFS= read -r mpirt && eval "$mpirt"
"""

SCRIPT = r"""
mpirt_put() {
  printf '\001mpirt-%s %s\n' "$mpirt_nonce" "$*"
}

# Opened anew, for the command may make its stderr non-blocking: then what finds a full pipe is lost. And for
# reading, too: to open a pipe for writing alone waits for a reader.
mpirt_say() {
  mpirt_put "$@" 1<>/proc/self/fd/4 || mpirt_put "$@" >&4
}

# A subshell's own pid: $$ is the leader's everywhere.
mpirt_self() {
  read -r mpirt_me mpirt_x </proc/self/stat
}

# A process's state, parent, group, session. Its name may hold anything, a newline too; the last ') ' ends it.
mpirt_stat() {
  mpirt_s=
  while IFS= read -r mpirt_x; do mpirt_s=$mpirt_x; done <"$1/stat"
  mpirt_s=${mpirt_s##*) }
}

# The leader's descendants, where the runtime gave it no session of its own.
mpirt_find_kin() {
  mpirt_kin=" $$ " mpirt_old=
  while [ "$mpirt_old" != "$mpirt_kin" ]; do
    mpirt_old=$mpirt_kin
    for mpirt_p in /proc/[0-9]*; do
      case $mpirt_kin in *" ${mpirt_p#/proc/} "*) continue ;; esac
      mpirt_stat "$mpirt_p"
      set -- $mpirt_s
      case $mpirt_kin in *" ${2-none} "*) mpirt_kin="$mpirt_kin${mpirt_p#/proc/} " ;; esac
    done
  done
}

mpirt_is_ours() {
  case $mpirt_session in
    own) [ "$2" = "$$" ] ;;
    *) case $mpirt_kin in *" $1 "*) ;; *) return 1 ;; esac ;;
  esac
}

# What a file says behind a word; nothing where it doesn't.
mpirt_field() {
  mpirt_s=
  while read -r mpirt_x mpirt_s && [ "$mpirt_x" != "$1" ]; do :; done <"$2"
}

# Whether a process has a handler for the signal.
mpirt_minds() {
  mpirt_field SigCgt: "/proc/$1/status"
  # Half of it, for a shell's arithmetic has no room for the highest bit.
  return $((~0x0${mpirt_s#????????} >> mpirt_last - 1 & 1))
}

# Whether a process is a shell that waits for another of those that are signalled, and would die of the signal:
# then what it has to do after its child has dealt with it would be lost.
mpirt_is_waiting() {
  case $mpirt_parents in *" $1 "*) ;; *) return 1 ;; esac
  ! mpirt_minds "$1" || return 1
  for mpirt_x in /bin /usr/bin /usr/local/bin; do
    for mpirt_s in sh ash bash dash ksh mksh yash zsh busybox; do
      [ ! "/proc/$1/exe" -ef "$mpirt_x/$mpirt_s" ] || break 2
    done
  done
  [ "/proc/$1/exe" -ef "$mpirt_x/$mpirt_s" ] || return 1
  # One program of many names. What stands between its words is lost to read.
  [ "/proc/$1/exe" -ef "$mpirt_x/busybox" ] || return 0
  IFS= read -r mpirt_x <"/proc/$1/cmdline"
  case ${mpirt_x#-} in sh* | ash* | /bin/sh* | /bin/ash* | *busyboxsh* | *busyboxash*) ;; *) return 1 ;; esac
}

# Whether a process is to have the signal: once. A shell that was spared has it when it goes on with something
# else; what is started by one that had it, and has a handler for it, is left to that one as long as it lives.
mpirt_is_due() {
  case $mpirt_told in *" $1 "*) return 1 ;; esac
  case $mpirt_last in [09]) mpirt_told="$mpirt_told$1 "; return ;; esac
  case $mpirt_helping in *" $1 "*) return 1 ;; esac
  case $mpirt_known in
    *" $1 "*) case $mpirt_renewed in *" $1 "*) ;; *) return 1 ;; esac ;;
    *) ! mpirt_is_waiting "$1" || return 1 ;;
  esac
  mpirt_told="$mpirt_told$1 "
  ! mpirt_minds "$1" || mpirt_minding="$mpirt_minding$1 "
}

# Gives a signal, by its number, to all of the command's session that have not had it yet; with a second word, only
# to those of its process group. True if there was anyone. The wrapper's own, who never get it, are known by their
# parent: without the leader they count as the command's, but for whoever signals.
mpirt_signal() {
  [ "$1" = "$mpirt_last" ] || mpirt_known=' ' mpirt_told=' ' mpirt_minding=' ' mpirt_late=' '
  mpirt_last=$1 mpirt_only=${2-} mpirt_all=' ' mpirt_parents=' ' mpirt_renewed=' ' mpirt_helping=' ' mpirt_any=
  [ "$mpirt_session" = own ] || mpirt_find_kin
  for mpirt_p in /proc/[0-9]*; do
    mpirt_stat "$mpirt_p"
    mpirt_p=${mpirt_p#/proc/}
    set -- $mpirt_s
    [ $# -gt 3 ] && mpirt_is_ours "$mpirt_p" "$4" || continue
    case "$1 $2" in [ZX]" "* | *" $$" | *" $mpirt_me" | *" $mpirt_guard") continue ;; esac
    case "$mpirt_p $3" in "$$ "* | "$mpirt_me "*) continue ;; *" ${mpirt_only:-$3}") ;; *) continue ;; esac
    mpirt_all="$mpirt_all$mpirt_p " mpirt_parents="$mpirt_parents$2 "
    case "$mpirt_known" in ' ' | *" $mpirt_p "*) ;; *) mpirt_late="$mpirt_late$mpirt_p " ;; esac
    case $mpirt_late in *" $mpirt_p "*)
      case $mpirt_minding$mpirt_helping in *" $2 "*) mpirt_helping="$mpirt_helping$mpirt_p " ;; esac ;;
    esac
    case $mpirt_known in *" $mpirt_p "*) continue ;; esac
    mpirt_renewed="$mpirt_renewed$2 "
    # One that is stopped deals with nothing.
    [ -n "$mpirt_only" ] || kill -s CONT "$mpirt_p"
  done
  for mpirt_p in $mpirt_all; do
    mpirt_name=$mpirt_last
    mpirt_is_due "$mpirt_p" || mpirt_name=0
    kill -s "$mpirt_name" "$mpirt_p" && mpirt_any=1
  done
  mpirt_known=$mpirt_all
  [ -n "$mpirt_any" ]
}

# Signals the leader's other children, but the guard, which has a child of its own to take along.
mpirt_tell() {
  mpirt_name=$1
  for mpirt_p in /proc/[0-9]*; do
    mpirt_stat "$mpirt_p"
    mpirt_p=${mpirt_p#/proc/}
    set -- $mpirt_s
    [ "${2-}" = "$$" ] || continue
    case $mpirt_p in "$mpirt_me" | "$mpirt_guard") continue ;; esac
    kill -s "$mpirt_name" "$mpirt_p"
  done
}

mpirt_nap() {
  sleep 0.1 4>&- || sleep 1 4>&-
}

mpirt_clock() {
  mpirt_now=0
  read -r mpirt_now mpirt_x </proc/uptime
  mpirt_now=${mpirt_now%.*}
}

# Waits until the command is there, for it may be about to start, then tells `run` to leave the cleaning up to us.
mpirt_take_over() {
  while [ "$mpirt_waits" -gt 0 ] && ! mpirt_signal 0; do
    mpirt_waits=$((mpirt_waits - 1))
    mpirt_nap
  done
  mpirt_waits=0
  mpirt_tell USR1
}

mpirt_kill() {
  mpirt_n=0
  while mpirt_signal 9 && [ "$mpirt_n" -lt 100 ]; do
    mpirt_n=$((mpirt_n + 1))
    mpirt_nap
  done
}

# The client is gone. `run` may be stuck in its report to nobody, or about to start the command: hence the end.
mpirt_stop() {
  mpirt_take_over
  mpirt_clock
  mpirt_end=$((mpirt_now + mpirt_grace))
  while mpirt_signal 15; do
    mpirt_clock
    [ "$mpirt_now" -lt "$mpirt_end" ] || break
    mpirt_nap
  done
  mpirt_kill
  mpirt_tell KILL
  mpirt_kill
}

mpirt_guard() {
  trap '' HUP INT QUIT PIPE
  trap 'mpirt_count=0' USR1
  trap 'mpirt_count=0; mpirt_say BEAT' USR2
  # KILL, for a child that is not yet sleep would take TERM for its parent's and forget it.
  trap 'kill -s KILL "$!"; wait; exit' TERM
  mpirt_self
  mpirt_guard=$mpirt_me mpirt_count=0
  echo "$mpirt_me"
  exec >/dev/null
  while [ "$mpirt_count" -le "$mpirt_patience" ] && kill -s 0 "$$"; do
    sleep "$mpirt_tick" 4>&- &
    until wait "$!" || ! kill -s 0 "$!"; do :; done
    mpirt_count=$((mpirt_count + 1))
  done
  trap '' TERM
  mpirt_stop
}

mpirt_order() {
  case $1 in
    D*) echo "${1#D}"; dd bs="${1#D}" count=1 iflag=fullblock <&3 4>&- ;;
    P*) printf '%s\n' "$1" ;;
    E) exec >/dev/null ;;
    S*) mpirt_last=; mpirt_signal "${1#S}" "$mpirt_group"; mpirt_last= ;;
    K9) mpirt_take_over; mpirt_kill ;;
    K*) mpirt_take_over; mpirt_signal "${1#K}" ;;
  esac
}

mpirt_watch() {
  trap '' HUP INT QUIT TERM PIPE USR1 USR2
  mpirt_self
  read -r mpirt_guard
  echo "$mpirt_guard $mpirt_me"
  [ "$mpirt_stdin" != none ] || exec >/dev/null
  while IFS= read -r mpirt_line <&3; do
    mpirt_name=USR1
    [ "$mpirt_line" != B ] || mpirt_name=USR2
    [ "$mpirt_guard" = none ] || kill -s "$mpirt_name" "$mpirt_guard"
    mpirt_order "$mpirt_line"
  done
  mpirt_stop
  [ "$mpirt_guard" = none ] || kill -s TERM "$mpirt_guard"
}

mpirt_feed() {
  trap '' HUP INT QUIT TERM PIPE USR1 USR2
  mpirt_self
  read -r mpirt_line
  echo "$mpirt_line $mpirt_me"
  while IFS= read -r mpirt_line; do
    case $mpirt_line in
      P*) printf "${mpirt_line#P}" ;;
      *) dd bs="$mpirt_line" count=1 iflag=fullblock 4>&- ;;
    esac || exit
    mpirt_say ACK
  done
}

# Whether a process can be what the command left behind: not one of ours or about to become their sleep or dd, not
# dead, and not older than the exec.
mpirt_is_left() {
  mpirt_stat "$1"
  set -- $mpirt_s
  case "$1 $$ $mpirt_others " in [ZX]* | *" $2 "*) return 1 ;; esac
  [ "${20:-$mpirt_since}" -ge "$mpirt_since" ]
}

# Whether anything that the command left behind has its output open. What vanishes meanwhile may have handed it on:
# then those are looked at that weren't there before. What can't be looked into is taken for one that has it.
mpirt_find_open() {
  mpirt_stat "/proc/$$"
  set -- $mpirt_s
  mpirt_since=${20} mpirt_seen=" /proc/$$ " mpirt_open=open
  [ -p /proc/self/fd/4 ] && [ -p /proc/self/fd/5 ] || return 0
  for mpirt_n in 1 2 3 4 5 6 7 8 9; do
    mpirt_more=
    for mpirt_p in /proc/[0-9]*; do
      case $mpirt_seen in *" $mpirt_p "*) continue ;; esac
      [ ! "$mpirt_p" -ef /proc/self ] || continue
      for mpirt_f in "$mpirt_p"/fd/*; do
        if [ -p "$mpirt_f" ]; then
          [ "$mpirt_f" -ef /proc/self/fd/4 ] || [ "$mpirt_f" -ef /proc/self/fd/5 ] || continue
          # Who reads it has the same file open, by another mode.
          mpirt_field flags: "$mpirt_p/fdinfo/${mpirt_f##*/}"
          case $mpirt_s in *0) continue ;; esac
          mpirt_is_left "$mpirt_p" || break
          [ ! -e "$mpirt_f" ] || return 0
        else
          # Closed since, and maybe opened anew: it is looked at again.
          [ ! -e "$mpirt_f" ] || continue
          mpirt_is_left "$mpirt_p" || break
        fi
        mpirt_more=1
        # One that has no file open at all is looked at once.
        [ "$mpirt_f" = "$mpirt_p/fd/*" ] && [ -r "$mpirt_p/fd" ] && break
        continue 2
      done
      mpirt_seen="$mpirt_seen$mpirt_p "
    done
    [ -n "$mpirt_more" ] || { mpirt_open=; return 1; }
  done
}

mpirt_run() {
  mpirt_keep=
  trap 'mpirt_keep=1' USR1
  trap : HUP INT QUIT TERM PIPE USR2
  read -r mpirt_others
  echo "$mpirt_others"
  [ "$mpirt_stdin" != none ] || exec </dev/null
  ( exec >&5 2>&4 4>&- 5>&-; mpirt_command )
  mpirt_code=$?
  mpirt_say EXIT "$mpirt_code"
  # Where it was told to end, all that is left of it has the grace for its last words.
  while mpirt_find_open && [ -n "$mpirt_keep" ]; do mpirt_nap; done
  mpirt_put END $mpirt_open 1<>/proc/self/fd/5 || mpirt_put END $mpirt_open >&5
  # Without the leader nobody tells us that another one cleans up: then whoever comes to it must be left alive.
  [ -n "$mpirt_keep" ] || ! kill -s 0 "$$" || mpirt_end_others $mpirt_others
  echo "$mpirt_code"
}

mpirt_heir() {
  trap '' HUP INT QUIT TERM PIPE USR1 USR2
  mpirt_self
  exec >/dev/null
  read -r mpirt_guard mpirt_x
  read -r mpirt_code && exit "$mpirt_code"
  mpirt_waits=0
  mpirt_stop
  [ "$mpirt_guard" = none ] || kill -s TERM "$mpirt_guard"
  exit 137
}

mpirt_end_others() {
  [ "$1" = none ] || kill -s TERM "$1"
  shift
  kill -s KILL "$@"
}

mpirt_head() {
  if [ "$mpirt_guarded" = guarded ]; then mpirt_guard; else echo none; fi
}

mpirt_start() {
  if [ "$mpirt_stdin" = none ]; then
    mpirt_head 3<&- 5>&- | mpirt_watch 5>&- | mpirt_run 3<&- | mpirt_heir 3<&- 4>&- 5>&-
  else
    mpirt_head 3<&- 5>&- | mpirt_watch 5>&- | mpirt_feed 3<&- 5>&- | mpirt_run 3<&- | mpirt_heir 3<&- 4>&- 5>&-
  fi
}

mpirt_look_around() {
  mpirt_session=shared mpirt_guarded=unguarded mpirt_last=
  mpirt_stat "/proc/$$"
  set -- $mpirt_s
  mpirt_group=$3
  [ "${4-}" != "$$" ] || mpirt_session=own
  ! command -v sleep >/dev/null || mpirt_guarded=guarded
  [ "$mpirt_stdin" != some ] || {
    mpirt_stdin=text
    [ "$(printf 1234 | dd bs=4 count=1 iflag=fullblock)" != 1234 ] || mpirt_stdin=raw
  }
}

unset mpirt
exec 3<&0 4>&2 5>&1 </dev/null 2>/dev/null
mpirt_look_around
IFS= read -r mpirt_x <&3 && [ "$mpirt_x" = GO ] || exit 1
mpirt_say START "$mpirt_stdin $mpirt_guarded $mpirt_session"
trap : HUP INT QUIT TERM PIPE USR1 USR2
mpirt_waits=10
mpirt_start
exit
"""
