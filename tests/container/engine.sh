#!/usr/bin/env bash
# A Docker engine for the container tests, also on a machine that has none running.
#
#   engine.sh up      Prints shell lines to `eval`. If an engine answers already it is used as it is. Otherwise, as root
#                     on Debian or Ubuntu, one is installed and started by hand (no systemd needed), with a stand-in for
#                     the base image built from Debian packages (nothing is pulled).
#   engine.sh down    Stops what `up` started, by its process id, and undoes its network settings. An engine that was
#                     running before is never touched. Images and layers stay, so the next `up` is quick.
#   engine.sh clean   `down`, and removes images, layers and the stand-in.
#
# The stand-in has the Python that the Dockerfile names, from the first of SUITES that has it. If none has it any more, the
# stable release's own Python is used, and a line says so. MIRROR is where the packages come from, by default as for
# this machine's own.
#
# What `up` prints:  ENGINE_STARTED  yes if `down` has something to stop
#                    ENGINE_DOCKER   a docker client that can build with BuildKit
#                    ENGINE_BASE     the base image to build on; empty: the one the Dockerfile names
#                    DOCKER_HOST     where our own engine listens (only if it is ours)
set -euo pipefail

# The engine and its images are ours alone: a stand-in named like a public image must not end up in a user's own engine.
home=${EVAL_GATE_ENGINE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/eval-gate/engine}
socket=unix://$home/docker.sock
SUITES=${SUITES:-forky sid}  # of Debian; both change every day
stable=trixie
python=$(sed -n 's/^ARG BASE=python:\([0-9.]*\)-slim@.*/\1/p' "$(dirname "$0")/../../Dockerfile")
standin=python:$python-slim

say() { printf '[engine %3ss] %s\n' "$SECONDS" "$*" >&2; }
fail() { printf '[engine] %s\n' "$*" >&2; exit 1; }

# The first client on PATH that can build with BuildKit: either it is old enough to have it built in, or it has buildx.
client() {
  local candidate
  while read -r candidate; do
    if DOCKER_BUILDKIT=1 "$candidate" build --help 2>/dev/null | grep -q -- --secret; then
      echo "$candidate"
      return
    fi
  done < <(type -ap docker)
  return 1
}

answers() { docker ${1:+--host "$1"} version --format '{{.Server.Version}}' 2>/dev/null | grep .; }

print_state() {
  local started=$1 base=$2 docker
  docker=$(client) || fail "the docker client here cannot build with BuildKit: install docker-buildx"
  printf 'ENGINE_STARTED=%q\nENGINE_DOCKER=%q\nENGINE_BASE=%q\n' "$started" "$docker" "$base"
}

install() {
  local missing=()
  command -v dockerd >/dev/null && client >/dev/null || missing+=(docker.io)
  command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
  ((${#missing[@]})) || return 0
  [[ $(id -u) == 0 ]] || fail "no Docker engine answers, and starting one needs root"
  command -v apt-get >/dev/null || fail "no Docker engine answers, and without apt-get none can be installed here"
  say "installing ${missing[*]}"
  { apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 \
      "${missing[@]}"; } >"$home/apt.log" 2>&1 ||
    { tail -n 20 "$home/apt.log" >&2; fail "the packages could not be installed"; }
  hash -r
}

start() {
  # dockerd turns forwarding on and closes it for everybody else: remember how it was, for `down`
  cat /proc/sys/net/ipv4/ip_forward >"$home/ip_forward"
  iptables -S FORWARD 2>/dev/null | head -n 1 >"$home/forward_policy" || true
  # The limits that the engine gives a container may not be above our own: without CAP_SYS_RESOURCE they are refused.
  local limits=() limit
  for limit in nofile:n nproc:u; do
    [[ $(ulimit "-H${limit#*:}") == unlimited ]] ||
      limits+=(--default-ulimit "${limit%:*}=$(ulimit "-H${limit#*:}")")
  done
  # its own session: Ctrl-C in a terminal is for the tests, `down` ends the engine
  setsid dockerd --host "$socket" --data-root "$home/data" --exec-root "$home/exec" --pidfile "$home/dockerd.pid" \
    "${limits[@]}" >"$home/dockerd.log" 2>&1 </dev/null &
  local pid=$!
  for _ in $(seq 120); do
    answers "$socket" >/dev/null && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.25
  done
  tail -n 20 "$home/dockerd.log" >&2
  kill "$pid" 2>/dev/null || true
  restore_network
  fail "the Docker engine did not start"
}

# Root file system in place of the official image: Debian with its own Python of the version "$1", from the release "$2".
# The official image has Python in /usr/local, so that is where it is found here too; neither of them sets a locale.
# This machine's certificates are laid in, so that `pip install` inside reaches what it reaches outside. A mirror that
# stands still for this machine's own packages (Check-Valid-Until) may do so for these.
# shellcheck disable=SC2016  # what is in single quotes is for apt and for the hooks' own shell
make_standin() {
  local version=$1 suite=$2 tar=$3 mirror=${MIRROR:-} valid
  [[ $mirror ]] ||
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | sed 's,/$,,' | grep -v security | sort -u | head -n 1)
  [[ $mirror ]] || fail "no Debian mirror is configured here: name one in MIRROR"
  valid=$(apt-config dump --format '%v' Acquire::Check-Valid-Until)
  mmdebstrap --variant=minbase --quiet \
    --include="ca-certificates,netbase,tzdata,python$version,python3-pip" \
    --aptopt="Acquire::Check-Valid-Until \"${valid:-true}\"" \
    --aptopt='Acquire::Languages "none"' --dpkgopt='force-unsafe-io' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED' \
    --customize-hook="for n in python python3; do ln -s /usr/bin/python$version \"\$1/usr/local/bin/\$n\"; done" \
    --customize-hook='printf "#!/bin/sh\nexec python -m pip \"\$@\"\n" >"$1/usr/local/bin/pip"' \
    --customize-hook='chmod 755 "$1/usr/local/bin/pip"' \
    --customize-hook='cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin "$1"/var/log/*' \
    "$suite" "$tar.part.tar" "$mirror" >"$home/standin.log" 2>&1 || return
  mv "$tar.part.tar" "$tar"
}

# Sets `tar`, and `standin` where no release has the Python that is asked for.
build_standin() {
  local suite
  tar=$home/base-$python.tar
  [[ -s $tar ]] && return
  for suite in $SUITES; do
    say "building a stand-in for $standin from packages of Debian $suite"
    make_standin "$python" "$suite" "$tar" && return
  done
  tail -n 20 "$home/standin.log" >&2
  say "*** neither of $SUITES gives Python $python: the image is tested on the Python of $stable instead ***"
  tar=$home/base-$stable.tar standin=python:$stable-slim
  [[ -s $tar ]] || make_standin 3 "$stable" "$tar" ||
    { tail -n 20 "$home/standin.log" >&2; fail "the stand-in base image could not be built"; }
}

load_standin() {
  local tar
  docker --host "$socket" image inspect "$standin" >/dev/null 2>&1 && return
  build_standin
  docker --host "$socket" import \
    --change 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'CMD ["python3"]' --message 'stand-in made of Debian packages' \
    "$tar" "$standin" >/dev/null
}

up() {
  local version
  if command -v docker >/dev/null && version=$(answers ""); then
    say "engine $version is running already and is used as it is"
    print_state "" ""
    return
  fi
  mkdir -p "$home"
  chmod 700 "$home"
  install
  if version=$(answers "$socket"); then
    say "engine $version of an earlier run is still up"
  else
    [[ $(id -u) == 0 ]] || fail "no Docker engine answers, and starting one needs root"
    start
    say "engine $(answers "$socket") started"
  fi
  load_standin
  say "base image ready: a stand-in for $standin, not the official one"
  print_state yes "$standin"
  printf 'export DOCKER_HOST=%q\n' "$socket"
}

restore_network() {
  local table rule chain
  if command -v ip >/dev/null && ip link show docker0 >/dev/null 2>&1; then ip link del docker0; fi
  command -v iptables >/dev/null || return 0
  # Rules that mention Docker first, in both tables: a chain can go only when nothing points at it. Rules come as one
  # line of words, of which a comment may be quoted: xargs takes the quotes off without handing the line to a shell.
  for table in filter nat; do
    iptables-save -t "$table" | sed -n -E 's/^-A (.*(DOCKER|docker0).*)$/\1/p' | while read -r rule; do
      printf '%s' "$rule" | xargs iptables -t "$table" -D 2>/dev/null || true
    done
  done
  for table in filter nat; do
    for action in -F -X; do
      iptables-save -t "$table" | sed -n 's/^:\(DOCKER[^ ]*\) .*/\1/p' | while read -r chain; do
        iptables -t "$table" "$action" "$chain" 2>/dev/null || true
      done
    done
  done
  # "-P FORWARD ACCEPT", as it was before
  if [[ -s $home/forward_policy ]]; then xargs iptables <"$home/forward_policy" || true; fi
  if [[ -s $home/ip_forward ]]; then cat "$home/ip_forward" >/proc/sys/net/ipv4/ip_forward || true; fi
}

down() {
  local pid
  pid=$(cat "$home/dockerd.pid" 2>/dev/null) || return 0
  # a process id may have been given to somebody else since: stop only what is a dockerd
  if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == dockerd ]]; then
    kill "$pid"
    for _ in $(seq 80); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.25
    done
    kill -0 "$pid" 2>/dev/null && fail "the engine (process $pid) does not stop; its log: $home/dockerd.log"
  fi
  rm -f "$home/dockerd.pid"
  umount "$home"/exec/netns/* 2>/dev/null || true
  restore_network
  say "engine stopped"
}

clean() {
  down
  rm -rf "$home"
}

case ${1:-} in
  up | down | clean) "$1" ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
