#!/usr/bin/env bash
# Sets up the environment (.venv) and the built workspace (.ws) inside the checkout.
#
#   tools/setup.sh                  everything that running and testing need (make setup)
#   tools/setup.sh lint             also the tools of `make lint`
#   tools/setup.sh bench            what `make bench` compares with, in .venv-bench
#   tools/setup.sh learning         what `make train-encoder` needs, in .venv-bench
#   tools/setup.sh plain-build DIR  colcon build without symbolic links, into DIR (tests)
#   tools/setup.sh install-command  print the command that installs what the machine lacks, if any
#   tools/setup.sh install-missing  run that command (CI)
#
# PYTHON=...      the interpreter to make .venv with, instead of the first suitable one
# ROS_WHEELS=...  kilted (default) or jazzy: the release to install where no ROS 2 is sourced
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
environment=$checkout/.venv
workspace=$checkout/.ws
# shellcheck source=tools/machine.sh
source "$checkout/tools/machine.sh"

say() { echo "setup: $*"; }

# Runs a command with its output in a log of its own, shown only when it fails.
logged() {
  local log=$workspace/log/$1.log
  shift
  mkdir -p "$workspace/log"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "failed: $*" >&2
    say "the whole output is in $log" >&2
    return 1
  fi
}

hash_of() { sha256sum "$@" | sha256sum | cut -d' ' -f1; }
stamp_is() { [[ -f $1 && $(<"$1") == "$2" ]]; }

# --- the environment -----------------------------------------------------------------------------

# Which ROS 2 the environment shall stand on: the sourced one; else the wheels that ROS_WHEELS asks
# for; else whatever it was made for, since it needs no sourcing; else Kilted's wheels.
ros_source() {
  local prefix made_for
  prefix=$(sourced_ros)
  made_for=$(cat "$environment/made-for" 2>/dev/null || true)
  if [[ -n $prefix ]]; then
    echo "sourced $prefix"
  elif [[ -n ${ROS_WHEELS:-} ]]; then
    echo "wheels $ROS_WHEELS"
  elif [[ $made_for == wheels* || ($made_for == sourced* && -d ${made_for#sourced }) ]]; then
    echo "$made_for"
  else
    echo 'wheels kilted'
  fi
}

# Does the environment run on the interpreter that $PYTHON asks for, if it asks for one?
has_wanted_python() {
  [[ -z ${PYTHON:-} ]] || stamp_is "$environment/made-with" "$(find_python)"
}

create_environment() {
  local python=$1 source=$2
  if [[ -e $environment ]]; then
    say "the environment was made for another Python or another ROS 2: making it anew"
    rm -rf "$environment" "$workspace/build" "$workspace/install" "$workspace/stamp"
  fi
  say "making $environment with $python ($source)"
  local options=()
  [[ $source == sourced* ]] && options=(--system-site-packages)
  "$python" -m venv "${options[@]}" "$environment"
  echo "$source" >"$environment/made-for"
  echo "$python" >"$environment/made-with"
}

# Installs requirements/<purpose>.txt for each purpose named.
install_requirements() {
  local purpose files=()
  for purpose in "$@"; do files+=(-r "$checkout/requirements/$purpose.txt"); done
  logged "install-$1" "$environment/bin/python" -m pip install "${files[@]}"
}

# The wheels of a ROS release, or the record of what the sourced one exports.
install_ros() {
  local source=$1
  if [[ $source == wheels* ]]; then
    local distro=${source#wheels }
    install_requirements "ros-$distro" build runtime scale test
    logged relocate "$environment/bin/python" "$checkout/tools/relocate_exports.py"
    echo "$distro" >"$environment/ros_distro"
  else
    install_requirements build runtime scale test
    echo "${ROS_DISTRO:-unknown}" >"$environment/ros_distro"
    "$environment/bin/python" -S - >"$environment/underlay.json" <<'PYTHON'
import json, os
names = ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
print(json.dumps({n: [p for p in os.environ.get(n, "").split(":") if p] for n in names}, indent=1))
PYTHON
  fi
}

install_start_up_hook() {
  local site_packages
  site_packages=$(echo "$environment"/lib/python3.*/site-packages)
  cmp -s "$checkout/tools/workspace_path.py" "$site_packages/kv_workspace_path.py" && return
  cp "$checkout/tools/workspace_path.py" "$site_packages/kv_workspace_path.py"
  # The name sorts before the wheels' own hook: .pth files run in alphabetical order.
  echo 'import kv_workspace_path' >"$site_packages/aa_kv_workspace_path.pth"
}

set_up_environment() {
  local source wanted python missing
  source=$(ros_source)
  wanted="$source $(hash_of "$checkout"/requirements/{ros-*,build,runtime,scale,test}.txt \
    "$checkout/tools/relocate_exports.py")"
  if stamp_is "$environment/stamp" "$wanted" && has_wanted_python; then return; fi

  python=$(find_python)
  missing=$(missing_packages "$python" | xargs)
  if [[ -n $missing ]]; then
    say "this machine lacks: $missing" >&2
    say "install it with:    $(install_command "$missing")" >&2
    return 1
  fi
  case $source in
  "sourced "*)
    case ${ROS_DISTRO:-} in
    jazzy | kilted) say "using the sourced ROS 2 $ROS_DISTRO" ;;
    *) say "using the sourced ROS 2 ${ROS_DISTRO:-of unknown release}: best effort," \
      "tested are jazzy and kilted" ;;
    esac
    ;;
  esac
  if ! stamp_is "$environment/made-for" "$source" || ! has_wanted_python; then
    create_environment "$python" "$source"
  fi
  say "installing the pinned requirements"
  install_ros "$source"
  echo "$wanted" >"$environment/stamp"
}

# The linters are no part of running and testing: installed on the first `make lint`.
set_up_lint_tools() {
  local wanted
  wanted=$(hash_of "$checkout/requirements/lint.txt")
  stamp_is "$environment/lint-stamp" "$wanted" && return
  say "installing the linters"
  install_requirements lint
  echo "$wanted" >"$environment/lint-stamp"
}

# Torch, and what the benchmarks compare this package with, stay out of the environment: gigabytes,
# and other versions than ours would be allowed. They see the environment's packages.
#
#   set_up_beside learning   what trains the perception network
#   set_up_beside bench      that, and what is compared with
set_up_beside() {
  local purpose=$1 beside=$checkout/.venv-bench wanted made_for free files=(learning)
  [[ $purpose == bench ]] && files+=(bench)
  files=("${files[@]/#/$checkout/requirements/}")
  files=("${files[@]/%/.txt}")
  made_for=$(hash_of "$environment/made-for" "$environment/made-with")
  wanted="$made_for $(hash_of "${files[@]}")"
  stamp_is "$beside/stamp-$purpose" "$wanted" && return
  if ! stamp_is "$beside/made-for" "$made_for"; then
    free=$(df --output=avail -BG "$checkout" | tr -dc 0-9)
    if ((free < 12)); then
      say "$beside takes 6 GB, $free GB are free" >&2
      return 1
    fi
    say "making $beside"
    "$environment/bin/python" -m venv --clear "$beside"
    local site_packages
    site_packages=$(cd "$beside" && echo lib/python3.*/site-packages)
    echo "import site; site.addsitedir('$environment/$site_packages')" \
      >"$beside/$site_packages/zz_environment.pth"
    echo "$made_for" >"$beside/made-for"
  fi
  say "installing into $beside: ${files[*]##*/}"
  logged "install-$purpose" "$beside/bin/python" -m pip install "${files[@]/#/-r}" || return
  echo "$wanted" >"$beside/stamp-$purpose"
}

# --- the workspace -------------------------------------------------------------------------------

# Contents of what is compiled or configured; names only of what is installed by symbolic link; not
# even names of the Python modules, since the source tree itself is on the path.
workspace_state() {
  cd "$checkout"
  {
    cat "$environment/stamp" CMakeLists.txt package.xml
    cat msg/*.msg srv/*.srv action/*.action
    {
      find msg srv action launch config scripts resource -type f
      find . -maxdepth 1 -name plugin.xml
    } | LC_ALL=C sort
  } | sha256sum | cut -d' ' -f1
}

# The package's own files in a folder of their own, by the command given (a link or a copy). CMake
# refuses to export include folders that lie below the source folder, and .venv, with NumPy's headers,
# lies below the checkout.
place_sources() {
  local folder=$1 item
  shift
  rm -rf "$folder/src"
  mkdir -p "$folder/src/kv_action_router"
  for item in "$checkout"/{CMakeLists.txt,package.xml,plugin.xml,LICENSE} \
    "$checkout"/{action,config,kv_action_router,launch,msg,resource,scripts,srv}; do
    [[ ! -e $item ]] || "$@" "$item" "$folder/src/kv_action_router/"
  done
}

# colcon build in a folder, with further options.
build_in() {
  local folder=$1
  shift
  local python=$environment/bin/python unity=OFF variables=()
  # The start-up hook gives colcon and its children what a sourced ROS 2 exports.
  if [[ $(<"$environment/made-for") == wheels* ]]; then
    unity=ON
    variables=(
      AMENT_PREFIX_PATH="$environment" CMAKE_PREFIX_PATH="$environment"
      PYTHONPATH="$checkout/tools/idl_cache" KV_IDL_CACHE="$workspace/idl"
    )
  fi
  cd "$folder"
  # MAKEFLAGS: colcon's own default also limits by load, which on a busy machine means one job.
  env PATH="$environment/bin:$PATH" MAKEFLAGS="-j$(nproc)" "${variables[@]}" "$python" -m colcon --log-base "$folder/log" build \
    --paths src/kv_action_router --build-base "$folder/build" --install-base "$folder/install" \
    --merge-install "$@" --event-handlers console_direct+ \
    --cmake-args -DPython3_EXECUTABLE="$python" -DBUILD_TESTING=OFF -DKV_UNITY_BUILD=$unity
}

# Fails where the environment can't do what everything else relies on.
check_workspace() {
  cd /
  "$environment/bin/python" - <<'PYTHON'
import rclpy
from ament_index_python.packages import get_package_share_directory
from kv_action_router.msg import TaskKey
from rclpy.serialization import deserialize_message, serialize_message

get_package_share_directory("kv_action_router")
assert deserialize_message(serialize_message(TaskKey()), TaskKey) == TaskKey()
PYTHON
}

set_up_workspace() {
  local wanted
  wanted=$(workspace_state)
  stamp_is "$workspace/stamp" "$wanted" && return
  say "building the workspace in $workspace"
  place_sources "$workspace" ln -s
  logged build build_in "$workspace" --symlink-install
  # Alone in a folder on Python's path: in the checkout's root, launch/ would pass for the package.
  mkdir -p "$workspace/python"
  ln -sfn "$checkout/kv_action_router" "$workspace/python/kv_action_router"
  logged check check_workspace
  echo "$wanted" >"$workspace/stamp"
  say "ready: $environment/bin/python finds ROS 2 and the workspace"
}

# --- entry ---------------------------------------------------------------------------------------

main() {
  local task=${1:-all}
  case $task in
  install-command | install-missing)
    local python missing command
    python=$(find_python)
    missing=$(missing_packages "$python" | xargs)
    [[ -n $missing ]] || return 0
    command=$(install_command "$missing")
    echo "$command"
    [[ $task == install-command ]] || $command
    ;;
  all | lint)
    mkdir -p "$workspace"
    exec 9>"$workspace/lock"
    flock 9 # two terminals may start a target at the same time
    set_up_environment
    install_start_up_hook
    [[ $task == lint ]] && set_up_lint_tools
    set_up_workspace
    ;;
  bench | learning)
    mkdir -p "$workspace"
    exec 9>"$workspace/lock-bench" # not the workspace's: gigabytes take minutes
    flock 9
    if ! set_up_beside "$task"; then
      [[ $task == bench ]] || return 1
      # a benchmark whose comparison is not there says so
      say "not all comparisons are there: their rows in the report will say so"
    fi
    ;;
  plain-build)
    local folder
    folder=$(cd "$2" && pwd -P)
    place_sources "$folder" cp -r
    build_in "$folder"
    ;;
  *)
    sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
    return 2
    ;;
  esac
}

# Read as a whole before it runs, so that an edit of this file meanwhile does no harm.
{
  main "$@"
  exit
}
