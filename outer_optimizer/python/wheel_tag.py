"""Says for which machines the wheel is: any Python 3, as ctypes calls the library, on this kind of machine."""

import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelTag(BuildHookInterface):
    """hatchling calls it for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]):
        """Sets the tag, of which auditwheel makes one that names the oldest C library."""
        del version
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
