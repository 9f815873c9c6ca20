"""Public names and the modules that define them."""

# isort: off
from .data.sources.base import Source as Source
from .data.sources.memory import MemoryData as MemoryData
from .distillation.distill import distill as distill
from .evaluate import evaluate_split as evaluate_split
from .losses.cross_entropy import LabelSmoothedCrossEntropy as LabelSmoothedCrossEntropy
from .losses.metrics import TokenAccuracy as TokenAccuracy
from .schedule import WarmupInverseSqrt as WarmupInverseSqrt
from .settings.data_sections import TokenData as TokenData
from .settings.fields import DataSettings as DataSettings
from .settings.sources import register_source as register_source
from .settings.toml import SettingsError as SettingsError, load_settings as load_settings
from .tasks.task import Training as Training
from .tasks.multi_label_classification.choice import choose_threshold as choose_threshold
from .training_run import train as train
