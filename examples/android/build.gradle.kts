import org.jetbrains.kotlin.gradle.dsl.JvmTarget

plugins {
    id("com.android.application") version "8.13.2"
    id("org.jetbrains.kotlin.android") version "2.3.10"
}

android {
    namespace = "translate"
    compileSdk = 36

    defaultConfig {
        applicationId = "org.example.translate" // choose your own before you publish the app
        minSdk = 24
        targetSdk = 36
        versionCode = 1
        versionName = "1"
    }

    // Uncompressed, so that the model can be mapped into memory from the app's package.
    androidResources.noCompress += "tflite"

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
}

kotlin {
    compilerOptions {
        jvmTarget = JvmTarget.JVM_17
    }
}

dependencies {
    implementation("com.google.ai.edge.litert:litert:2.1.6")
}

val model = file("src/main/assets/model.tflite")

val checkModel by tasks.registering {
    doLast {
        check(model.exists()) {
            "$model is missing. Write it with: keras-transformer export litert RUN $model"
        }
    }
}

tasks.named("preBuild") { dependsOn(checkModel) }

// `gradle wrapper`, run by this version or a later one, writes the wrapper for this version.
tasks.wrapper {
    gradleVersion = "8.13"
    distributionSha256Sum = "20f1b1176237254a6fc204d8434196fa11a4cfb387567519c61556e8710aed78"
}
