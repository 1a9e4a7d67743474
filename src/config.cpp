#include "src/config.h"
