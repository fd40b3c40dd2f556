"""MIOpen's engines for hipdnn-registry: libMIOpen through ctypes, HIP through hip-python."""
