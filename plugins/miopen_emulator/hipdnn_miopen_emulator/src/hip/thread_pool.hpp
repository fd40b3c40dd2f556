// Threads that wait for work between launches.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

// Runs `work` on `count` threads, of which the caller's is one, and waits for all.
void run_on_threads(size_t count, const std::function<void()> &work);
