/** Everything Kilter offers. */
#ifndef KILTER_KILTER_H
#define KILTER_KILTER_H
#include "kilter/farm.h"
#include "kilter/predict.h"
#include "kilter/run.h"
#include "kilter/status.h"
#include "kilter/version.h"
#endif
