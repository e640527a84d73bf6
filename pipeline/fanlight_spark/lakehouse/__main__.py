"""`python -m fanlight_spark.lakehouse compact|vacuum`: where no Spark is installed."""

import sys

from fanlight_spark.lakehouse.command import main

sys.exit(main())
