// Stand-in libamd_comgr, through which MIOpen compiles its OpenCL kernels.
//
// MIOpen asks for a chain of actions: add precompiled headers, source to bitcode, bitcode to
// relocatable, relocatable to executable. The second makes the whole code object; the others hand
// it on under the kind of data that they are to yield.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernel_compiler.hpp"

namespace {

enum Status { SUCCESS = 0, ERROR = 1 };
enum Kind { SOURCE = 1, INCLUDE = 2, LOG = 5, BITCODE = 6, RELOCATABLE = 7, EXECUTABLE = 8 };
enum Action {
  ADD_PRECOMPILED_HEADERS = 1,
  CODEGEN_BITCODE = 4,
  LINK_EXECUTABLE = 7,
  ASSEMBLE = 8,
  COMPILE_WITH_DEVICE_LIBRARIES = 12,
};

struct Handle {
  uint64_t value;
};

struct Data {
  int kind = 0;
  int references = 1;
  std::string content, name;
};
struct DataSet {
  std::vector<Data *> items;
};
struct ActionInfo {
  std::vector<std::string> options;
};

template <class T> T *object(Handle handle) {
  return reinterpret_cast<T *>(static_cast<uintptr_t>(handle.value));
}
Handle handle_of(void *pointer) { return {reinterpret_cast<uintptr_t>(pointer)}; }

void release(Data *data) {
  if (--data->references == 0) delete data;
}

void add(DataSet *set, int kind, const std::string &name, const std::string &content) {
  set->items.push_back(new Data{kind, 1, content, name});
}

int hand_on(const DataSet &input, DataSet *output, int from, int to) {
  for (const Data *item : input.items)
    if (item->kind == from) add(output, to, item->name, item->content);
  add(output, LOG, "log", "");
  return SUCCESS;
}

int compile(const DataSet &input, const ActionInfo &info, DataSet *output, const char *language,
            int kind) {
  KernelSource source{language, "unnamed", "", {}, info.options};
  for (const Data *item : input.items) {
    if (item->kind == SOURCE) source.name = item->name, source.text = item->content;
    if (item->kind == INCLUDE) source.headers.emplace_back(item->name, item->content);
  }
  CompiledKernel compiled = compile_kernel(source);
  add(output, LOG, "log", compiled.log);
  if (!compiled.ok) return ERROR;
  add(output, kind, source.name, compiled.code);
  return SUCCESS;
}

}  // namespace

extern "C" {

void amd_comgr_get_version(size_t *major, size_t *minor) {
  *major = 3;
  *minor = 0;
}

int amd_comgr_status_string(int status, const char **text) {
  *text = status == SUCCESS ? "SUCCESS" : "ERROR";
  return SUCCESS;
}

int amd_comgr_create_data(int kind, Handle *created) {
  auto *data = new Data;
  data->kind = kind;
  *created = handle_of(data);
  return SUCCESS;
}

int amd_comgr_release_data(Handle data) {
  release(object<Data>(data));
  return SUCCESS;
}

int amd_comgr_set_data(Handle data, size_t bytes, const char *content) {
  object<Data>(data)->content.assign(content, bytes);
  return SUCCESS;
}

int amd_comgr_set_data_name(Handle data, const char *name) {
  object<Data>(data)->name = name ? name : "";
  return SUCCESS;
}

int amd_comgr_get_data(Handle data, size_t *bytes, char *content) {
  const std::string &held = object<Data>(data)->content;
  if (content) std::memcpy(content, held.data(), held.size());
  *bytes = held.size();
  return SUCCESS;
}

int amd_comgr_create_data_set(Handle *created) {
  *created = handle_of(new DataSet);
  return SUCCESS;
}

int amd_comgr_destroy_data_set(Handle set) {
  for (Data *item : object<DataSet>(set)->items) release(item);
  delete object<DataSet>(set);
  return SUCCESS;
}

int amd_comgr_data_set_add(Handle set, Handle added) {
  object<Data>(added)->references++;
  object<DataSet>(set)->items.push_back(object<Data>(added));
  return SUCCESS;
}

int amd_comgr_action_data_count(Handle set, int kind, size_t *count) {
  *count = 0;
  for (Data *item : object<DataSet>(set)->items) *count += item->kind == kind;
  return SUCCESS;
}

int amd_comgr_action_data_get_data(Handle set, int kind, size_t index, Handle *found) {
  for (Data *item : object<DataSet>(set)->items) {
    if (item->kind != kind || index-- != 0) continue;
    item->references++;
    *found = handle_of(item);
    return SUCCESS;
  }
  return ERROR;
}

int amd_comgr_create_action_info(Handle *created) {
  *created = handle_of(new ActionInfo);
  return SUCCESS;
}

int amd_comgr_destroy_action_info(Handle info) {
  delete object<ActionInfo>(info);
  return SUCCESS;
}

int amd_comgr_action_info_set_isa_name(Handle, const char *) { return SUCCESS; }
int amd_comgr_action_info_set_language(Handle, int) { return SUCCESS; }
int amd_comgr_action_info_set_logging(Handle, bool) { return SUCCESS; }

int amd_comgr_action_info_set_option_list(Handle info, const char **options, size_t count) {
  object<ActionInfo>(info)->options.assign(options, options + count);
  return SUCCESS;
}

int amd_comgr_do_action(int action, Handle info_handle, Handle input_handle, Handle output_handle) {
  const DataSet &input = *object<DataSet>(input_handle);
  const ActionInfo &info = *object<ActionInfo>(info_handle);
  DataSet *output = object<DataSet>(output_handle);
  switch (action) {
    case ADD_PRECOMPILED_HEADERS: return hand_on(input, output, SOURCE, SOURCE);
    case COMPILE_WITH_DEVICE_LIBRARIES: return compile(input, info, output, "opencl", BITCODE);
    case CODEGEN_BITCODE: return hand_on(input, output, BITCODE, RELOCATABLE);
    case LINK_EXECUTABLE: return hand_on(input, output, RELOCATABLE, EXECUTABLE);
    case ASSEMBLE: return compile(input, info, output, "assembly", RELOCATABLE);
    default:
      add(output, LOG, "log",
          "error: comgr action " + std::to_string(action) + " is not supported\n");
      return ERROR;
  }
}
}
