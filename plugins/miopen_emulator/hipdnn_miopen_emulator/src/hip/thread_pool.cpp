#include "thread_pool.hpp"

#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace {

class Pool {
 public:
  void run(size_t helpers, const std::function<void()> &work) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      while (threads_ < helpers) {
        std::thread([this, number = threads_] { serve(number); }).detach();
        threads_++;
      }
      work_ = &work;
      helpers_ = running_ = helpers;
      round_++;
    }
    if (helpers) wake_.notify_all();
    work();
    std::unique_lock<std::mutex> guard(lock_);
    done_.wait(guard, [this] { return running_ == 0; });
  }

 private:
  void serve(size_t number) {
    unsigned long seen = 0;
    std::unique_lock<std::mutex> guard(lock_);
    for (;;) {
      wake_.wait(guard, [&] { return round_ != seen; });
      seen = round_;
      if (number >= helpers_) continue;
      guard.unlock();
      (*work_)();
      guard.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex lock_;
  std::condition_variable wake_, done_;
  const std::function<void()> *work_ = nullptr;
  size_t threads_ = 0, helpers_ = 0, running_ = 0;
  unsigned long round_ = 0;
};

}  // namespace

void run_on_threads(size_t count, const std::function<void()> &work) {
  // Never destroyed: its threads outlive main. A forked child has none of them, so it makes its
  // own.
  static Pool *pool;
  static pid_t owner;
  if (owner != getpid()) {
    pool = new Pool;
    owner = getpid();
  }
  pool->run(count ? count - 1 : 0, work);
}
