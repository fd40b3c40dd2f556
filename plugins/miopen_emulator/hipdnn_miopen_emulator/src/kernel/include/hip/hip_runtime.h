// Declared already: see ../../hip.hpp.
#pragma once
