"""The real libMIOpen on a machine without an AMD GPU: its ROCm libraries are stand-ins."""

__version__ = "0.1.0"
