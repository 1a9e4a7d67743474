# Optimisation: -O3 for the kernels, -O2 for the rest of the tensor library (ggmlx/CMakeLists.txt), -O1 for the rooms above it,
# whose own code is no part of a step's time; each pays in compile time for what it gains.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

# One interface target with what every file of this project is compiled with.
# Floating point: no contraction and no fast-math, so that a sum has one value whatever compiler or ISA computes it.
add_library(ggmlx_options INTERFACE)
target_compile_options(ggmlx_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:\
-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Werror;-ffp-contract=off;-fno-fast-math;-fvisibility=hidden>")
# Two warnings of g++ 12 that depend on how it inlines and raise false alarms: in std::string's operator+ (GCC bug 105651)
# and in std::optional (GCC bug 80635). clang, the second compiler, checks for the same mistakes.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ggmlx_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized>")
endif()
# In a unity build (several .cpp files of a room compiled as one, presets release, asan, tsan and fuzz: half the time) a file's
# anonymous namespace looks to g++ like one in a header.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ggmlx_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>")
endif()
if(GGMLX_SANITIZE)
  target_compile_options(ggmlx_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GGMLX_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer;-g1>")
  target_link_options(ggmlx_options INTERFACE -fsanitize=${GGMLX_SANITIZE})
endif()

# ggmlx_precompile(TARGET OWNER [HEADER...]): TARGET's files find the long headers already parsed; the first target of a set of
# compile flags, its OWNER, parses them. The preset clang does without, so that a file which forgets an #include is found there.
function(ggmlx_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE
      ${ARGN} <nlohmann/json.hpp> <fmt/format.h> <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <string> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
