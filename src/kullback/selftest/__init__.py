"""Does it compute right on this machine, and what do its detectors see there?"""

from __future__ import annotations
