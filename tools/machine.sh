# shellcheck shell=bash
# What setup needs to know about the machine. Sourced by setup.sh; changes nothing.

readonly oldest_python=11 # 3.11: older ones have no wheels of the pinned NumPy, SciPy and MuJoCo
readonly newest_wheels=13 # 3.13: the newest Python that the pinned ROS 2 wheels were built for
# Built with profile-guided optimization: up to twice as fast as one that was compiled by hand.
distribution_python=/usr/bin/python3

# The prefix of a ROS 2 that the calling shell has sourced; empty where there is none.
sourced_ros() {
  local prefix prefixes
  IFS=: read -ra prefixes <<<"${AMENT_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    if [[ $prefix != "$checkout"/* && -d $prefix/share/rclpy ]]; then
      echo "$prefix"
      return
    fi
  done
}

# Minor version of a Python 3 interpreter; empty where it is not one or does not start.
python_minor() {
  "$1" -c 'import sys; print(sys.version_info.minor if sys.version_info.major == 3 else "")' \
    2>/dev/null || true
}

# Path of the Python to build with. Tries $PYTHON, then the distribution's own, then what the path
# names; on a sourced ROS 2 only python3, the one that rclpy was compiled for.
find_python() {
  local candidate minor
  local candidates=("${PYTHON:-}" "$distribution_python" python3 python3.13 python3.12 python3.11)
  [[ -n $(sourced_ros) ]] && candidates=("${PYTHON:-}" python3)
  for candidate in "${candidates[@]}"; do
    [[ -n $candidate ]] || continue
    minor=$(python_minor "$candidate")
    [[ -n $minor ]] || continue
    if ((minor >= oldest_python)) && { [[ -n $(sourced_ros) ]] || ((minor <= newest_wheels)); }; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  if [[ -n $(sourced_ros) ]]; then
    echo "The sourced ROS 2 ${ROS_DISTRO:-} runs on $(python3 --version 2>&1 || echo 'no python3')," \
      "and this package needs Python 3.$oldest_python or newer. Start a shell that has not sourced" \
      "it: the setup then installs a ROS 2 of its own into .venv." >&2
  else
    echo "No Python 3.$oldest_python to 3.$newest_wheels found (looked for: ${candidates[*]});" \
      "$(python3 --version 2>&1 || echo 'no python3') is there. Install one, or name it:" \
      "make setup PYTHON=/path/to/python3" >&2
  fi
  return 1
}

# Can this library be loaded? Asked of the linker itself: ldconfig is not on every user's path.
has_library() {
  "$1" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$2" 2>/dev/null
}

# Debian and Ubuntu packages that the machine lacks, one a line.
missing_packages() {
  local python=$1 version
  version=$("$python" -c 'import sys; print(f"{sys.version_info.major}.{sys.version_info.minor}")')
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v make >/dev/null || echo make
  "$python" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' \
    2>/dev/null || echo "python$version-dev"
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo "python$version-venv"
  has_library "$python" libEGL.so.1 || echo libegl1
  has_library "$python" libGL.so.1 || echo libgl1
  # A vendor's driver serves as well as Mesa's software rendering.
  if ! compgen -G '/usr/share/glvnd/egl_vendor.d/*.json' >/dev/null &&
    ! compgen -G '/etc/glvnd/egl_vendor.d/*.json' >/dev/null; then
    printf '%s\n' libegl-mesa0 libgl1-mesa-dri
  fi
}

# The command that installs the named packages, for the user to copy or for CI to run.
install_command() {
  local sudo=
  ((EUID == 0)) || sudo='sudo '
  echo "${sudo}apt-get install -y --no-install-recommends $*"
}
