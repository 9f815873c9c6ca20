"""Public names and the modules that define them."""

from .ctranslate2.export import export_ctranslate2 as export_ctranslate2
from .ctranslate2.format import CTranslate2Options as CTranslate2Options
from .ctranslate2.translator import CTranslate2TextGenerator as CTranslate2TextGenerator
from .ctranslate2.translator import CTranslate2Translator as CTranslate2Translator
from .errors import ExportError as ExportError
from .litert.export import export_litert as export_litert
from .litert.format import LiteRTOptions as LiteRTOptions
from .litert.runtime import LiteRTTranslator as LiteRTTranslator
from .litert.strings_runtime import LiteRTStringTranslator as LiteRTStringTranslator
from .marian.export import export_marian as export_marian
from .marian.format import MarianOptions as MarianOptions
from .onnx.export import export_onnx as export_onnx
from .onnx.format import OnnxOptions as OnnxOptions
from .options import QuantizedOptions as QuantizedOptions
from .saved_model.export import export_saved_model as export_saved_model
from .saved_model.format import SavedModelOptions as SavedModelOptions
from .saved_model.runtime import SavedModelTranslator as SavedModelTranslator
